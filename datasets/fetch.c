#include "datasets/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"

#define DOWNLOAD_TIMEOUT_NS (INT64_C(1800) * 1000000000)

enum { OUTPUT_LIMIT_BYTES = 4096 };

/* The downloader's last output line, which gives its reason. */
static const char *last_line(char *output)
{
	size_t length = strlen(output);

	while (length > 0 && (output[length - 1] == '\n' || output[length - 1] == '\r'))
		output[--length] = '\0';
	const char *newline = strrchr(output, '\n');
	return newline ? newline + 1 : output;
}

static enum prony_status run_downloader(const char *const *argv, const struct dataset_file *file,
					const char *folder, struct error *err)
{
	struct process_spec spec = {.argv = argv, .new_group = true};
	struct process_end end;
	char *output = NULL;
	enum prony_status status =
		process_run(&spec, DOWNLOAD_TIMEOUT_NS, OUTPUT_LIMIT_BYTES, &output, &end, err);

	if (status == PRONY_OK && (end.signalled || end.code != 0)) {
		char how[128];
		const char *reason = output ? last_line(output) : "";

		process_end_text(&end, how, sizeof(how));
		status = error_set(err, PRONY_IO,
				   "cannot download %s: %s (%s, %s); check the network, or copy "
				   "the file to %s yourself",
				   file->url, *reason ? reason : "no reason given", argv[0], how,
				   folder);
	}
	free(output);
	return status;
}

static enum prony_status download(const struct dataset_file *file, const char *folder,
				  const char *part, struct error *err)
{
	char *curl = process_find("curl");
	char *wget = curl ? NULL : process_find("wget");
	char limit[32];
	enum prony_status status;

	snprintf(limit, sizeof(limit), "%lld", (long long)file->bytes);
	if (curl) {
		const char *argv[] = {"curl",
				      "--fail",
				      "--location",
				      "--silent",
				      "--show-error",
				      "--proto",
				      "=https",
				      "--proto-redir",
				      "=https",
				      "--connect-timeout",
				      "20",
				      "--retry",
				      "2",
				      "--max-filesize",
				      limit,
				      "--output",
				      part,
				      "--",
				      file->url,
				      NULL};
		status = run_downloader(argv, file, folder, err);
	} else if (wget) {
		const char *argv[] = {"wget", "-nv",	 "--tries=3", "--timeout=30", "-O", part,
				      "--",   file->url, NULL};
		status = run_downloader(argv, file, folder, err);
	} else {
		status = error_set(err, PRONY_MISSING,
				   "neither curl nor wget is on PATH; install one of them, or copy "
				   "%s to %s yourself",
				   file->url, folder);
	}
	free(curl);
	free(wget);
	return status;
}

/* Verifies the file under a temporary name, so that a file with the final name is always intact. */
static enum prony_status fetch_file(const struct dataset *dataset, const struct dataset_file *file,
				    const char *folder, struct error *err)
{
	char *part_name = memory_printf(".%s.%ld.part", file->name, (long)getpid());
	char *part = path_join(folder, part_name);
	char *path = path_join(folder, file->name);
	struct dataset_file as_part = *file;
	enum prony_status status;

	as_part.name = part_name;
	status = download(file, folder, part, err);
	if (status == PRONY_OK) {
		status = dataset_verify_file(dataset, &as_part, folder, NULL, err);
		if (status != PRONY_OK)
			error_prefix(err, "the file from %s is not the published one", file->url);
	}
	if (status == PRONY_OK && rename(part, path) != 0)
		status = error_errno(err, PRONY_IO, errno, "%s: cannot rename into place", path);
	if (status != PRONY_OK)
		unlink(part);
	free(path);
	free(part);
	free(part_name);
	return status;
}

/* Extracts the data set's files from the archive into `folder`. */
static enum prony_status unpack(const struct dataset *dataset, const char *archive,
				const char *folder, struct error *err)
{
	const char *argv[DATASET_FILES_MAX + 8] = {
		"tar", "-xzf", archive, "-C", folder, "--strip-components=1", "--no-same-owner"};
	struct process_spec spec = {.argv = argv, .new_group = true};
	struct process_end end;
	char *output = NULL, *members[DATASET_FILES_MAX];
	size_t words = 7, count = 0;

	for (const struct dataset_file *file = dataset->files; file->name; file++) {
		members[count] = memory_printf("%s/%s", dataset->archive.folder, file->name);
		argv[words++] = members[count++];
	}
	enum prony_status status =
		process_run(&spec, DOWNLOAD_TIMEOUT_NS, OUTPUT_LIMIT_BYTES, &output, &end, err);
	if (status == PRONY_OK && (end.signalled || end.code != 0))
		status = error_set(err, PRONY_IO, "tar cannot unpack %s: %s", archive,
				   output && *last_line(output) ? last_line(output)
								: "no reason given");
	free(output);
	while (count > 0)
		free(members[--count]);
	return status;
}

/* Moves each intact file to its final path. */
static enum prony_status take_files(const struct dataset *dataset, const char *from, const char *to,
				    struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (const struct dataset_file *file = dataset->files; status == PRONY_OK && file->name;
	     file++) {
		char *old = path_join(from, file->name), *new = path_join(to, file->name);

		status = dataset_verify_file(dataset, file, from, NULL, err);
		if (status == PRONY_OK && rename(old, new) != 0)
			status = error_errno(err, PRONY_IO, errno, "%s: cannot rename into place",
					     new);
		free(old);
		free(new);
	}
	return status;
}

/* Downloads a package of Debian with the system's own client and extracts it into `work`. */
static enum prony_status fetch_package(const struct dataset *dataset, const char *work,
				       const char *folder, struct error *err)
{
	const char *package = dataset->archive.file.name, *file = dataset->files[0].name;
	const char *argv[] = {
		"sh", "-c",    "apt-get -qq download \"$1\" && dpkg-deb -x \"$1\"_*.deb .",
		"sh", package, NULL};
	struct process_spec spec = {.argv = argv, .directory = work, .new_group = true};
	struct process_end end;
	char *output = NULL;
	enum prony_status status =
		process_run(&spec, DOWNLOAD_TIMEOUT_NS, OUTPUT_LIMIT_BYTES, &output, &end, err);

	if (status == PRONY_OK && (end.signalled || end.code != 0))
		status = error_set(err, PRONY_IO,
				   "cannot get Debian's package %s with apt-get and dpkg-deb: %s; "
				   "take its file %s/%s elsewhere and copy it to %s",
				   package,
				   output && *last_line(output) ? last_line(output)
								: "no reason given",
				   dataset->archive.folder, file, folder);
	free(output);
	return status;
}

static enum prony_status fetch_archive(const struct dataset *dataset, const char *folder,
				       struct error *err)
{
	char *work = memory_printf("%s/.unpack.%ld", folder, (long)getpid());
	char *archive = path_join(work, dataset->archive.file.name);
	char *files = path_join(work, dataset->archive.is_package ? dataset->archive.folder : "");
	enum prony_status status = directory_make(work, err);

	if (status == PRONY_OK && dataset->archive.is_package)
		status = fetch_package(dataset, work, folder, err);
	else if (status == PRONY_OK)
		status = fetch_file(dataset, &dataset->archive.file, work, err);
	if (status == PRONY_OK && !dataset->archive.is_package)
		status = unpack(dataset, archive, work, err);
	if (status == PRONY_OK)
		status = take_files(dataset, files, folder, err);
	directory_remove(work, NULL);
	free(files);
	free(archive);
	free(work);
	return status;
}

static void say(void (*line)(void *context, const char *text), void *context, const char *name,
		const char *what)
{
	char *text = memory_printf("%s: %s", name, what);

	if (line)
		line(context, text);
	free(text);
}

/* Whether it is intact where prony searches it, perhaps in a folder that is shared; *folder, if
 * any, is the caller's to free. */
static bool is_found(const struct dataset *dataset, char **folder)
{
	if (dataset_locate(dataset, NULL, folder, NULL) != PRONY_OK)
		return false;
	for (const struct dataset_file *file = dataset->files; file->name; file++)
		if (dataset_verify_file(dataset, file, *folder, NULL, NULL) != PRONY_OK)
			return false;
	return true;
}

static enum prony_status fetch_all(const struct dataset *dataset, const char *folder,
				   void (*line)(void *context, const char *text), void *context,
				   struct error *err)
{
	const struct dataset_archive *archive = &dataset->archive;

	for (const struct dataset_file *file = dataset->files; file->name; file++) {
		struct error ignored = ERROR_INIT;
		bool whole = dataset_verify_file(dataset, file, folder, NULL, &ignored) == PRONY_OK;
		enum prony_status status = PRONY_OK;

		if (whole) {
			say(line, context, file->name, "already there");
		} else if (file->url) {
			say(line, context, file->name, "downloading");
			status = fetch_file(dataset, file, folder, err);
		} else {
			say(line, context, archive->file.name, "downloading");
			return fetch_archive(dataset, folder, err);
		}
		if (status != PRONY_OK)
			return status;
	}
	return PRONY_OK;
}

enum prony_status dataset_fetch(const struct dataset *dataset, const char *folder,
				void (*line)(void *context, const char *text), void *context,
				struct error *err)
{
	char *target = NULL;
	enum prony_status status;

	if (!dataset->files[0].name)
		return error_set(
			err, PRONY_BAD_INPUT,
			"data set %s is generated while measuring; there is nothing to fetch",
			dataset->name);
	if (dataset->owner)
		return error_set(err, PRONY_BAD_INPUT,
				 "data set %s cannot be fetched: %s; put them in a folder %s "
				 "(docs/datasets.md)",
				 dataset->name, dataset->owner, dataset->name);
	if (!dataset_is_published(dataset))
		return error_set(err, PRONY_BAD_INPUT, "data set %s %s; there is nothing to fetch",
				 dataset->name,
				 dataset->shipped ? "comes with the program" : "is not published");
	if (folder) {
		target = memory_strdup(folder);
	} else if (is_found(dataset, &target)) {
		say(line, context, target, "already there");
		free(target);
		return PRONY_OK;
	} else {
		free(target);
		char *home = path_data_home();
		target = memory_printf("%s/data/%s", home, dataset->name);
		free(home);
	}
	status = directory_make(target, err);
	if (status == PRONY_OK)
		status = fetch_all(dataset, target, line, context, err);
	free(target);
	return status;
}
