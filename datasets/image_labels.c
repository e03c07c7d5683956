/* Reads the label file of pictures in one folder: one line per picture, "NAME LABEL", or only the
 * label in the order of the names. A label is a number from 0 or a class name such as n01440764;
 * classes are then numbered in the order of their names. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "datasets/image_list_internal.h"

#define LABELS_LIMIT_BYTES ((size_t)256 << 20)

/* File names beside the folder or tar file under which ImageNet's validation labels are published;
 * tried after labels.txt in the folder and PATH.txt. */
static const char *const published[] = {
	"val.txt",
	"imagenet_2012_validation_synset_labels.txt",
};

/* The path of the file if it exists, in the list's arena, or NULL. */
static const char *take_if_there(struct image_list *list, char *path)
{
	const char *found = file_exists(path) ? arena_strdup(&list->arena, path) : NULL;

	free(path);
	return found;
}

static char *folder_of(const char *path)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	while (length > 0 && path[length - 1] != '/')
		length--;
	return length > 0 ? memory_printf("%.*s", (int)length, path) : memory_strdup("./");
}

/* The path without trailing slashes and without ".tar". */
static char *stem_of(const char *path)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	if (length > 4 && strncmp(path + length - 4, ".tar", 4) == 0)
		length -= 4;
	return memory_printf("%.*s", (int)length, path);
}

static const char *find_labels(struct image_list *list)
{
	char *folder = folder_of(list->path), *stem = stem_of(list->path);
	const char *found = take_if_there(list, path_join(list->path, "labels.txt"));

	if (!found)
		found = take_if_there(list, memory_printf("%s.txt", stem));
	for (size_t i = 0; !found && i < sizeof(published) / sizeof(published[0]); i++)
		found = take_if_there(list, memory_printf("%s%s", folder, published[i]));
	free(stem);
	free(folder);
	return found;
}

/* A line of the file. */
struct label_line {
	const char *name; /* NULL: the line has no name */
	char *label;
	int64_t line;
};

struct label_file {
	const char *path;
	char *text;
	struct label_line *lines;
	size_t count;
};

static enum prony_status wrong(const struct label_file *file, int64_t line, const char *what,
			       const char *word, struct error *err)
{
	return error_set(err, PRONY_BAD_INPUT,
			 "%s: line %" PRId64
			 ": %s '%.80s'; correct the line, or use the published labels",
			 file->path, line, what, word);
}

/* Splits "NAME LABEL" at the last space or tab. */
static void split(char *line, struct label_line *out)
{
	char *last = line + strlen(line);

	while (last > line && last[-1] != ' ' && last[-1] != '\t')
		last--;
	out->label = last;
	out->name = NULL;
	if (last == line)
		return;
	while (last > line && (last[-1] == ' ' || last[-1] == '\t'))
		*--last = '\0';
	out->name = line;
}

static enum prony_status read_lines(struct label_file *file, struct error *err)
{
	size_t length, room = 0;
	enum prony_status status =
		file_read(file->path, LABELS_LIMIT_BYTES, &file->text, &length, err);
	char *rest = file->text, *line;

	if (status != PRONY_OK)
		return status;
	for (int64_t number = 1; (line = strsep(&rest, "\n")); number++) {
		size_t end = strlen(line);

		while (end > 0 && strchr(" \t\r", line[end - 1]))
			line[--end] = '\0';
		if (*line == '\0')
			continue;
		file->lines = memory_grow(file->lines, file->count, &room, sizeof(*file->lines));
		split(line, &file->lines[file->count]);
		file->lines[file->count++].line = number;
	}
	return PRONY_OK;
}

static int compare_lines(const void *left, const void *right)
{
	return strcmp(((const struct label_line *)left)->name,
		      ((const struct label_line *)right)->name);
}

static int compare_words(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Sorts named lines into the order of the entries and checks that each entry has exactly one. */
static enum prony_status match(const struct image_list *list, struct label_file *file,
			       struct error *err)
{
	bool named = file->count > 0 && file->lines[0].name;

	for (size_t i = 0; i < file->count; i++)
		if ((file->lines[i].name != NULL) != named)
			return wrong(file, file->lines[i].line,
				     named ? "there is no name before the label"
					   : "unexpected name, because the lines before have none:",
				     named ? file->lines[i].label : file->lines[i].name, err);
	if (named)
		qsort(file->lines, file->count, sizeof(*file->lines), compare_lines);
	for (size_t i = 0; named && i < list->count && i < file->count; i++) {
		int order = strcmp(file->lines[i].name, list->entries[i].name);

		if (order < 0)
			return wrong(file, file->lines[i].line,
				     "there is no such image:", file->lines[i].name, err);
		if (order > 0)
			return error_set(
				err, PRONY_BAD_INPUT,
				"%s: there is no line for %s of %s; add it, or remove the image",
				file->path, list->entries[i].name, list->path);
	}
	if (file->count != list->count)
		return error_set(
			err, PRONY_BAD_INPUT,
			"%s: %zu labels, but %s contains %zu images; use the published labels",
			file->path, file->count, list->path, list->count);
	return PRONY_OK;
}

static bool is_number(const char *text)
{
	return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static enum prony_status take_numbers(struct image_list *list, const struct label_file *file,
				      int64_t classes, struct error *err)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct label_line *line = &file->lines[i];

		errno = 0;
		long label = is_number(line->label) ? strtol(line->label, NULL, 10) : -1;
		if (errno != 0 || label < 0 || label >= classes || label > INT32_MAX)
			return error_set(err, PRONY_BAD_INPUT,
					 "%s: line %" PRId64
					 ": label '%.80s' is not one of the %" PRId64
					 " classes, 0 to %" PRId64
					 "; correct the line, or use the published labels",
					 file->path, line->line, line->label, classes, classes - 1);
		list->entries[i].label = (int32_t)label;
	}
	return PRONY_OK;
}

static enum prony_status take_words(struct image_list *list, const struct label_file *file,
				    int64_t classes, struct error *err)
{
	const char **words = memory_alloc((list->count + 1) * sizeof(*words));
	size_t count = 0;

	list->classes = words;
	for (size_t i = 0; i < list->count; i++) {
		if (is_number(file->lines[i].label))
			return wrong(file, file->lines[i].line,
				     "a class name is expected, not a number:",
				     file->lines[i].label, err);
		words[i] = arena_strdup(&list->arena, file->lines[i].label);
		list->entries[i].class_name = words[i];
	}
	qsort(words, list->count, sizeof(*words), compare_words);
	for (size_t i = 0; i < list->count; i++)
		if (count == 0 || strcmp(words[count - 1], words[i]) != 0)
			words[count++] = words[i];
	if ((int64_t)count > classes)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: it contains %zu classes, but the data set has %" PRId64
				 "; use the published labels",
				 file->path, count, classes);
	list->class_count = count;
	for (size_t i = 0; i < list->count; i++) {
		const char **place = bsearch(&list->entries[i].class_name, words, count,
					     sizeof(*words), compare_words);

		list->entries[i].label = (int32_t)(place - words);
	}
	return PRONY_OK;
}

enum prony_status image_list_label(struct image_list *list, int64_t classes, struct error *err)
{
	struct label_file file = {.path = find_labels(list)};

	if (!file.path)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: images without classes; put each into a folder for its "
				 "class, or add labels.txt with lines of a file name and a label "
				 "(for a tar file, NAME.txt beside it)",
				 list->path);
	list->labels_path = file.path;
	enum prony_status status = read_lines(&file, err);
	if (status == PRONY_OK)
		status = match(list, &file, err);
	if (status == PRONY_OK)
		status = is_number(file.lines[0].label) ? take_numbers(list, &file, classes, err)
							: take_words(list, &file, classes, err);
	free(file.lines);
	free(file.text);
	return status;
}
