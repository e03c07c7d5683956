/* Collects the nodes that cannot be translated, so that one message names all of them. */
#include "onnx/import_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define REASON_BYTES 320

void import_refuse(struct importer *im, const struct file_node *node, const char *format, ...)
{
	char text[REASON_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	im->refusals[im->refusal_count++] =
		(struct refusal){.node = node, .reason = arena_strdup(&im->arena, text)};
}

/* Lists the nodes of one operator that is not supported. */
static void list_operator(const struct importer *im, int first, struct strbuf *text)
{
	const char *op = im->refusals[first].node->proto->op_type;
	const char *domain = im->refusals[first].node->proto->domain;
	int count = 0;

	strbuf_printf(text, "%s%s%.60s (", domain && domain[0] ? domain : "",
		      domain && domain[0] ? "." : "", op);
	for (int i = first; i < im->refusal_count; i++) {
		const struct refusal *refusal = &im->refusals[i];

		if (refusal->reason || strcmp(refusal->node->proto->op_type, op) != 0)
			continue;
		if (++count <= 3)
			strbuf_printf(text, "%s'%.80s'", count > 1 ? ", " : "",
				      refusal->node->name);
	}
	if (count > 3)
		strbuf_printf(text, " and %d more", count - 3);
	strbuf_putc(text, ')');
}

static bool is_first_of_operator(const struct importer *im, int index)
{
	const char *op = im->refusals[index].node->proto->op_type;

	if (im->refusals[index].reason)
		return false;
	for (int i = 0; i < index; i++) {
		if (!im->refusals[i].reason &&
		    strcmp(im->refusals[i].node->proto->op_type, op) == 0)
			return false;
	}
	return true;
}

void import_list_operators(const struct importer *im, struct strbuf *out)
{
	bool any = false;

	for (int i = 0; i < im->refusal_count && out->length < ERROR_TEXT_BYTES; i++) {
		if (!is_first_of_operator(im, i))
			continue;
		strbuf_puts(out, any ? "; " : "unsupported operators: ");
		list_operator(im, i, out);
		any = true;
	}
}

enum prony_status import_report(const struct importer *im, struct error *err)
{
	struct strbuf text;
	int shown = 0;
	enum prony_status status;

	strbuf_init(&text, 0);
	import_list_operators(im, &text);
	for (int i = 0; i < im->refusal_count && text.length < ERROR_TEXT_BYTES; i++) {
		const struct refusal *refusal = &im->refusals[i];

		if (refusal->reason)
			strbuf_printf(&text, "%snode '%.100s' (%.60s): %s",
				      shown++ || text.length ? "; " : "", refusal->node->name,
				      refusal->node->proto->op_type, refusal->reason);
	}
	status = error_set(err, PRONY_UNSUPPORTED, "%s: %s", im->model->path, strbuf_text(&text));
	strbuf_release(&text);
	return status;
}
