/* Repair steps after an installation, from the descriptor, each with its reason. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "frameworks/install_internal.h"

#define COMPILE_LIMIT_NS INT64_C(60000000000)

enum prony_status install_repair_path(struct install *install,
				      const struct framework_repair *repair, const char **out,
				      struct error *err)
{
	struct arena *arena = &install->arena;
	const char *path = arena_printf(arena, "%s/%s", install->tree, repair->path);
	const char *slash = strrchr(path, '/');
	const char *folder = arena_strndup(arena, path, (size_t)(slash - path));
	enum prony_status status = PRONY_OK;
	glob_t matches;

	if (strpbrk(repair->path, "*?[") == NULL) {
		*out = path;
		return directory_make(folder, err);
	}
	if (memory_glob(folder, GLOB_ONLYDIR, &matches) != 1)
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s: repairs: %zu installed folders match %s; exactly one must "
				   "match. Correct the path",
				   install->framework->file, matches.gl_pathc, repair->path);
	else
		*out = arena_printf(arena, "%s%s", matches.gl_pathv[0], slash);
	globfree(&matches);
	return status;
}

/* Builds a stub library: functions that do nothing, enough for the loader. */
static enum prony_status make_stub(struct install *install, const struct framework_repair *repair,
				   const char *path, struct error *err)
{
	const char *source = arena_printf(&install->arena, "%s/stub.c", install->temporary);
	const char *soname =
		arena_printf(&install->arena, "-Wl,-soname,%s", strrchr(path, '/') + 1);
	const char *const argv[] = {"cc",   "-shared", "-fPIC", "-w",	"-fno-builtin",
				    soname, "-o",      path,	source, NULL};
	struct error failure = ERROR_INIT;
	struct strbuf text;

	strbuf_init(&text, 0);
	for (size_t i = 0; i < repair->symbols.count; i++)
		strbuf_printf(&text, "int %s(void) { return 0; }\n", repair->symbols.words[i]);
	enum prony_status status = file_write_atomic(source, strbuf_text(&text), text.length, err);
	strbuf_clear(&text);
	if (status == PRONY_OK) {
		status = install_child(install, argv, COMPILE_LIMIT_NS, NULL, &text, &failure);
		if (status != PRONY_OK)
			error_set(err, status,
				  "%s: cannot compile the stub library %s with cc: %s%s%.300s",
				  install->spelling, repair->path, failure.text,
				  text.length ? ": " : "", strbuf_text(&text));
	}
	strbuf_release(&text);
	return status;
}

static enum prony_status repair_one(struct install *install, const struct framework_repair *repair,
				    struct error *err)
{
	const char *path = NULL;
	enum prony_status status = install_repair_path(install, repair, &path, err);

	if (status != PRONY_OK)
		return status;
	install_say(install, "repairing %s: %s", repair->path, repair->why);
	if (unlink(path) != 0 && errno != ENOENT)
		return error_errno(err, PRONY_IO, errno, "cannot replace %s", path);
	switch (repair->kind) {
	case REPAIR_SYMLINK:
		if (symlink(repair->text, path) != 0)
			return error_errno(err, PRONY_IO, errno, "cannot make the link %s", path);
		return PRONY_OK;
	case REPAIR_WRITE_FILE:
		return file_write_atomic(path, repair->text, strlen(repair->text), err);
	case REPAIR_STUB_LIBRARY:
		return make_stub(install, repair, path, err);
	}
	return PRONY_OK;
}

enum prony_status install_repair(struct install *install, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; i < install->framework->repair_count && status == PRONY_OK; i++)
		status = repair_one(install, &install->framework->repairs[i], err);
	return status;
}
