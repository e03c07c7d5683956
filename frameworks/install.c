/* Installs a framework into its own folder: complete and tested, or not at all. */
#include "frameworks/install_internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/lock_file.h"
#include "base/memory.h"
#include "frameworks/wheel.h"

#define LOCK_POLL_NS INT64_C(200000000)

/* "FOLDER/../.NAME.suffix": in the parent folder, so on the same file system. */
static const char *beside(const char *folder, const char *suffix, struct arena *arena)
{
	const char *slash = strrchr(folder, '/');

	return arena_printf(arena, "%.*s/.%s.%s", (int)(slash - folder), folder, slash + 1, suffix);
}

const char *install_staging(const char *folder, struct arena *arena)
{
	return beside(folder, "part", arena);
}

enum prony_status install_lock(const char *folder, const struct install_sink *sink,
			       const char *spelling, int *fd, struct error *err)
{
	struct arena arena;
	bool reported = false;
	char line[256];

	arena_init(&arena, 0);
	const char *path = beside(folder, "lock", &arena);
	const char *parent = arena_strndup(&arena, folder, (size_t)(strrchr(folder, '/') - folder));
	enum prony_status status = directory_make(parent, err);
	int lock = -1;
	if (status != PRONY_OK)
		goto out;
	status = lock_file_open(path, 0600, &lock, err);
	if (status != PRONY_OK)
		goto out;
	while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR) {
			status = error_errno(err, PRONY_IO, errno, "cannot lock %s", path);
			goto out;
		}
		if (sink && sink->stop && *sink->stop) {
			status = error_set(err, PRONY_INTERRUPTED, "interrupted");
			goto out;
		}
		snprintf(line, sizeof(line),
			 "%s: waiting for another prony process that is installing it", spelling);
		if (!reported && sink && sink->line)
			sink->line(sink->context, line);
		reported = true;
		clock_sleep_until_ns(clock_monotonic_ns() + LOCK_POLL_NS);
	}
	*fd = lock;
	lock = -1;
out:
	if (lock >= 0)
		close(lock);
	arena_release(&arena);
	return status;
}

/* Debian's policy for names of library packages: libgomp.so.1 is in libgomp1. */
static const char *debian_package(const char *soname, struct arena *arena)
{
	const char *version = strstr(soname, ".so.");

	return version ? arena_printf(arena, "%.*s%s", (int)(version - soname), soname, version + 4)
		       : soname;
}

static enum prony_status check_needs(struct install *install, struct error *err)
{
	for (size_t i = 0; i < install->lock.needs.count; i++) {
		const char *soname = install->lock.needs.words[i];
		/* Keep it mapped: libgomp leaks memory when it is unloaded. */
		void *handle = dlopen(soname, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
		if (!handle)
			return error_set(err, PRONY_MISSING,
					 "%s needs %s, which is not on this system; install it "
					 "(Debian: apt install %s)",
					 install->spelling, soname,
					 debian_package(soname, &install->arena));
		dlclose(handle);
	}
	return PRONY_OK;
}

/* Wheels, pip's copies of them and the unpacked files exist at the same time. */
int64_t install_disk_mb(const struct install *install)
{
	return 2 * install->lock.download_mb + install->lock.disk_mb;
}

int64_t install_free_mb(const char *folder)
{
	struct statvfs info;

	return statvfs(folder, &info) == 0
		       ? (int64_t)((double)info.f_bavail * (double)info.f_frsize / 1e6)
		       : -1;
}

static enum prony_status check_disk(const struct install *install, struct error *err)
{
	int64_t wanted_mb = install_disk_mb(install), free_mb = install_free_mb(install->staging);

	if (free_mb < 0 || free_mb >= wanted_mb)
		return PRONY_OK;
	return error_set(err, PRONY_IO,
			 "the installation of %s needs %" PRId64 " MB, but only %" PRId64
			 " MB are free in %s; free some space, or set XDG_DATA_HOME to a folder on "
			 "another disk",
			 install->spelling, wanted_mb, free_mb, install->folder);
}

/* Never replace a folder that the user filled; remove an empty one. */
enum prony_status install_may_replace(const struct install *install, struct error *err)
{
	char *manifest = path_join(install->folder, MANIFEST_NAME);
	bool may = file_exists(manifest) || rmdir(install->folder) == 0 ||
		   !file_exists(install->folder);

	free(manifest);
	return may ? PRONY_OK
		   : error_set(err, PRONY_MISSING,
			       "%s: the folder %s exists, but prony did not create it; move it "
			       "away and try again",
			       install->spelling, install->folder);
}

static bool is_whole_in(const char *folder, const struct install *install,
			struct manifest *manifest)
{
	struct arena *arena = (struct arena *)&install->arena;
	const char *entry = NULL;
	struct python_answer answer;

	if (!manifest_read(folder, arena, manifest) ||
	    strcmp(manifest->lock_sha256, install->lock.sha256) != 0 ||
	    framework_files_fault(folder, manifest, arena))
		return false;
	entry = arena_printf(arena, "%s/%s", folder, manifest->entry);
	if (!file_has_bytes(entry) || install->lock.kind != LOCK_VENV)
		return file_has_bytes(entry);
	/* If files of the environment were deleted, install it again. */
	python_ask(entry, install->framework, arena, &answer);
	return answer.found && !framework_packages_fault(folder, arena);
}

/* The folder where it is installed; NULL if it is not. A shared one counts if the user's own, which
 * comes first, does not exist. */
static const char *installed_already(const struct install *install, struct manifest *manifest)
{
	const char *const *folders;
	size_t count = framework_folders(install->framework, install->environment,
					 (struct arena *)&install->arena, &folders);

	if (file_exists(install->folder))
		count = 1;
	for (size_t i = 0; i < count; i++)
		if (is_whole_in(folders[i], install, manifest))
			return folders[i];
	return NULL;
}

/* Says so if there is nothing to do. */
static bool say_installed(struct install *install)
{
	struct manifest manifest;
	const char *folder = installed_already(install, &manifest);

	if (folder)
		install_say(install, "%s is already installed: %s", manifest.version, folder);
	return folder;
}

/* Tries the locks of the Python versions in turn, in install->lock, until `wanted` accepts one;
 * *locks counts the existing locks. */
static enum prony_status each_version(struct install *install,
				      bool (*wanted)(struct install *install,
						     struct strbuf *looked),
				      struct strbuf *looked, size_t *locks, struct error *err)
{
	const struct word_list *versions = &install->framework->pythons;
	enum prony_status status = PRONY_OK;

	*locks = 0;
	for (size_t i = 0; i < versions->count; i++) {
		const char *path = lock_find(install->framework, install->environment,
					     versions->words[i], &install->arena);
		if (!path)
			continue;
		status = lock_read(path, &install->arena, &install->lock, err);
		if (status != PRONY_OK)
			return status;
		(*locks)++;
		if (wanted(install, looked))
			break;
	}
	return status;
}

static bool is_installed(struct install *install, struct strbuf *looked)
{
	struct manifest manifest;

	(void)looked;
	return installed_already(install, &manifest) != NULL;
}

static bool has_python(struct install *install, struct strbuf *looked)
{
	install->python = install_find_python(install, install->lock.python, looked);
	return install->python != NULL;
}

/* "3.12, 3.11": the versions that have a lock. */
static const char *locked_versions(struct install *install)
{
	const struct word_list *versions = &install->framework->pythons;
	const char *text = "";

	for (size_t i = 0; i < versions->count; i++)
		if (lock_find(install->framework, install->environment, versions->words[i],
			      &install->arena))
			text = arena_printf(&install->arena, "%s%s%s", text, *text ? ", " : "",
					    versions->words[i]);
	return text;
}

static enum prony_status no_python(struct install *install, const char *one_of,
				   const char *versions, const struct strbuf *looked,
				   struct error *err)
{
	return error_set(err, PRONY_MISSING,
			 "%s needs %sPython %s with its venv module, which was not found: %s; "
			 "install it (pyenv install %s, or the package pythonX.Y-venv), or set "
			 "PRONY_PYTHON_X_Y to its path (X.Y is the version)",
			 install->spelling, one_of, versions, strbuf_text(looked),
			 arena_strndup(&install->arena, versions, strcspn(versions, ",")));
}

/* Chooses the installed version, otherwise the first one whose interpreter is available. */
static enum prony_status choose_python(struct install *install, struct error *err)
{
	size_t locks;
	enum prony_status status = each_version(install, is_installed, NULL, &locks, err);
	const char *versions = locked_versions(install);
	struct strbuf looked;

	if (status != PRONY_OK || locks == 0 || is_installed(install, NULL))
		return status;
	strbuf_init(&looked, 0);
	status = each_version(install, has_python, &looked, &locks, err);
	if (status == PRONY_OK && !install->python)
		status = no_python(install, "one of ", versions, &looked, err);
	strbuf_release(&looked);
	return status;
}

static enum prony_status need_python(struct install *install, struct error *err)
{
	struct strbuf looked;
	enum prony_status status = PRONY_OK;

	strbuf_init(&looked, 0);
	if (!has_python(install, &looked))
		status = no_python(install, "", install->lock.python, &looked, err);
	strbuf_release(&looked);
	return status;
}

static enum prony_status no_lock(struct install *install, struct error *err)
{
	const struct framework *framework = install->framework;
	const char *suffix = framework->kind == FRAMEWORK_PYTHON ? "PYTHON" : "LIBRARY";
	char *home = path_data_home();

	error_set(err, PRONY_MISSING,
		  "there is no lock file %s.txt with the packages to install; add one to %s/locks "
		  "(see frameworks/locks/README.md), or set %s to your own installation",
		  lock_stem(framework, install->environment, &install->arena), home,
		  framework_variable(install->spelling, suffix, &install->arena));
	free(home);
	return PRONY_MISSING;
}

/* A lock for another framework would install the wrong thing. */
static enum prony_status check_lock(const struct install *install, struct error *err)
{
	const struct framework *framework = install->framework;
	bool python = framework->kind == FRAMEWORK_PYTHON;

	if (strcmp(install->lock.framework, framework->name) != 0)
		return error_set(err, PRONY_BAD_INPUT, "%s: framework is %s; it must be %s",
				 install->lock.path, install->lock.framework, framework->name);
	if ((install->lock.kind == LOCK_VENV) != python)
		return error_set(err, PRONY_BAD_INPUT, "%s: kind must be %s for %s",
				 install->lock.path, python ? "venv" : "unpack", framework->name);
	return PRONY_OK;
}

static enum prony_status choose_lock(struct install *install, struct error *err)
{
	struct arena *arena = &install->arena;
	const char *path = lock_find(install->framework, install->environment, NULL, arena);
	enum prony_status status =
		path ? lock_read(path, arena, &install->lock, err) : choose_python(install, err);

	if (status == PRONY_OK && !install->lock.path)
		status = no_lock(install, err);
	if (status == PRONY_OK)
		status = check_lock(install, err);
	if (status == PRONY_OK && path && install->lock.kind == LOCK_VENV &&
	    !is_installed(install, NULL))
		status = need_python(install, err);
	return status;
}

static enum prony_status unpack(struct install *install, struct error *err)
{
	const char *pattern = arena_printf(&install->arena, "%s/*.whl", install->wheels);
	enum prony_status status = install_find_pip(install, err);
	size_t extracted = 0;
	glob_t wheels;

	if (status == PRONY_OK)
		status = install_pip(install, "download", err);
	if (status != PRONY_OK)
		return status;
	install_say(install, "unpacking");
	if (memory_glob(pattern, 0, &wheels) == 0)
		status = error_set(err, PRONY_BAD_INPUT, "%s: pip downloaded no wheel for %s",
				   install->spelling, install->lock.path);
	for (size_t i = 0; status == PRONY_OK && i < wheels.gl_pathc; i++)
		status = wheel_extract(wheels.gl_pathv[i], install->lock.keep.words,
				       install->lock.keep.count, install->tree, &extracted, err);
	globfree(&wheels);
	const char *library =
		arena_printf(&install->arena, "%s/%s", install->tree, install->lock.library);
	if (status == PRONY_OK && !file_has_bytes(library))
		status = error_set(
			err, PRONY_BAD_INPUT,
			"%s: the library %s is not among the files that 'keep' takes out of the "
			"wheel",
			install->lock.path, install->lock.library);
	return status;
}

static enum prony_status make_environment(struct install *install, struct error *err)
{
	install_say(install, "making an environment with %s", install->python);
	enum prony_status status = install_venv(install, install->python, install->tree, err);
	if (status == PRONY_OK)
		status = install_own_pip(install, err);
	return status == PRONY_OK ? install_pip(install, "install", err) : status;
}

enum prony_status install_put_in_place(const struct install *install, struct error *err)
{
	/*
	 * Sync data before the rename: after a power failure the folder must be complete or absent.
	 */
	int fd = open(install->tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		syncfs(fd);
		close(fd);
	}
	if (rename(install->tree, install->folder) == 0 ||
	    renameat2(AT_FDCWD, install->tree, AT_FDCWD, install->folder, RENAME_EXCHANGE) == 0)
		return PRONY_OK;
	/* For file systems without an atomic exchange. */
	const char *old = arena_printf((struct arena *)&install->arena, "%s/old", install->staging);
	if ((rename(install->folder, old) != 0 && errno != ENOENT) ||
	    rename(install->tree, install->folder) != 0)
		return error_errno(err, PRONY_IO, errno, "cannot rename %s to %s", install->tree,
				   install->folder);
	return PRONY_OK;
}

static enum prony_status fill(struct install *install, struct error *err)
{
	const char *entry = install->lock.kind == LOCK_VENV ? VENV_ENTRY : install->lock.library;
	const char *says = "";
	struct manifest manifest = {.lock = install->lock.name,
				    .lock_sha256 = install->lock.sha256,
				    .version = install->lock.version,
				    .entry = entry};
	int64_t start_ns = clock_monotonic_ns();

	install_say(install, "installing %s (download %" PRId64 " MB, on disk %" PRId64 " MB)",
		    install->lock.version, install->lock.download_mb, install->lock.disk_mb);
	enum prony_status status = install->lock.kind == LOCK_VENV ? make_environment(install, err)
								   : unpack(install, err);
	if (status != PRONY_OK)
		return status;
	status = install_repair(install, err);
	/* List the files before a worker runs, which may leave files of its own. */
	if (status == PRONY_OK)
		status = install_list_files(install, &manifest, err);
	if (status != PRONY_OK)
		return status;
	install_say(install, "testing it in a worker");
	status = install_try(install, entry, &says, err);
	if (status != PRONY_OK) {
		error_prefix(err,
			     "%s was downloaded but not installed, because it does not work here",
			     install->spelling);
		return status;
	}
	status = manifest_write(install->tree, install->framework->name, &manifest, err);
	if (status == PRONY_OK)
		status = install_put_in_place(install, err);
	if (status == PRONY_OK)
		install_say(install, "installed in %.1f s; version %s; in %s",
			    (double)(clock_monotonic_ns() - start_ns) / 1e9, says, install->folder);
	return status;
}

static enum prony_status install_locked(struct install *install, struct error *err)
{
	enum prony_status status = PRONY_OK;

	/* Another process may have installed it while we waited for the lock. */
	if (say_installed(install))
		return PRONY_OK;
	status = install_may_replace(install, err);
	if (status != PRONY_OK)
		return status;
	/* Old staging folders are from a killed installation: the lock proves that it ended. */
	const char *const folders[] = {install->staging, install->tree, install->wheels,
				       install->temporary};
	status = directory_remove(install->staging, err);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && status == PRONY_OK; i++)
		status = directory_make(folders[i], err);
	if (status == PRONY_OK)
		status = check_disk(install, err);
	if (status == PRONY_OK)
		status = fill(install, err);
	directory_remove(install->staging, NULL);
	return install_explain_full(install, status, err);
}

enum prony_status install_begin(struct install *install, const struct framework *framework,
				const char *environment, const struct install_sink *sink,
				struct error *err)
{
	struct arena *arena = &install->arena;

	enum prony_status status = framework_check_environment(framework, environment, err);
	if (status != PRONY_OK)
		return status;
	if (framework->broken)
		return error_set(err, PRONY_BAD_INPUT, "%s", framework->broken);
	*install = (struct install){.framework = framework, .sink = sink, .lock_fd = -1};
	arena_init(arena, 0);
	install->environment = arena_strdup(arena, environment ? environment : "");
	install->spelling = framework_spelling(framework, environment, arena);
	install->folder = framework_folder(framework, environment, arena);
	install->staging = install_staging(install->folder, arena);
	install->tree = arena_printf(arena, "%s/tree", install->staging);
	install->wheels = arena_printf(arena, "%s/wheels", install->staging);
	install->temporary = arena_printf(arena, "%s/tmp", install->staging);
	return PRONY_OK;
}

/* Tell the user that another installation takes precedence over this one. */
static void mention_named(struct install *install)
{
	const struct framework *framework = install->framework;
	const char *suffix = framework->kind == FRAMEWORK_PYTHON ? "PYTHON" : "LIBRARY";
	const char *variable = framework_variable(install->spelling, suffix, &install->arena);
	const char *value = getenv(variable);

	if (value && *value)
		install_say(install, "%s=%s is set and takes precedence over this installation",
			    variable, value);
}

/* Spares the user a large download if an environment that is active has it. */
static void mention_discovered(struct install *install)
{
	struct framework_location place;

	if (install->lock.kind == LOCK_VENV &&
	    framework_locate(install->framework, install->environment, &install->arena, &place,
			     NULL) == PRONY_OK &&
	    place.origin == ORIGIN_DISCOVERED)
		install_say(install,
			    "%s in %s is used without an installation; once installed, prony's own "
			    "comes first",
			    place.version, place.interpreter);
}

enum prony_status install_prepare(struct install *install, bool *needed, struct error *err)
{
	const struct framework *framework = install->framework;

	*needed = false;
	if (framework->kind == FRAMEWORK_BUILTIN) {
		install_say(install, "part of prony: nothing to install");
		return PRONY_OK;
	}
	if (framework->kind == FRAMEWORK_COMMAND) {
		install_say(install, "started by %s: nothing to install", framework->file);
		return PRONY_OK;
	}
	enum prony_status status = choose_lock(install, err);
	if (status != PRONY_OK)
		return status;
	if (say_installed(install))
		return PRONY_OK;
	status = check_needs(install, err);
	*needed = status == PRONY_OK;
	if (*needed)
		mention_discovered(install);
	return status;
}

enum prony_status install_carry_out(struct install *install, struct error *err)
{
	enum prony_status status = install_lock(install->folder, install->sink, install->spelling,
						&install->lock_fd, err);

	if (status == PRONY_OK)
		status = install_locked(install, err);
	if (install->lock_fd >= 0)
		close(install->lock_fd);
	install->lock_fd = -1;
	return status;
}

void install_end(struct install *install, enum prony_status status)
{
	if (status == PRONY_OK)
		mention_named(install);
	arena_release(&install->arena);
}
