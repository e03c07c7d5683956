/* The machine lock, and other files in its place. */
#include <errno.h>
#include <sys/file.h>
#include <time.h>

#include "base/lock_file.h"
#include "run/lock.h"
#include "unit_test.h"

struct fixture {
	char *path, *other;
};

static int set_up(void **state)
{
	static struct fixture f;

	f = (struct fixture){test_path("lock"), test_path("other")};
	*state = &f;
	return 0;
}

#define LOCK_TEST(name) TEST_ON(name, set_up, NULL, struct fixture *f)

static mode_t mode_of(const char *path)
{
	struct stat info;

	assert_int_equal(lstat(path, &info), 0);
	return info.st_mode & 07777;
}

static void refused(const struct fixture *f, const char *part)
{
	struct error err = ERROR_INIT;
	int fd = -1;

	assert_int_equal(lock_take(f->path, NULL, NULL, NULL, &fd, &err), PRONY_STORE);
	if (!strstr(err.text, part) || !strstr(err.text, "PRONY_LOCK"))
		fail_msg("'%s' is not in: %s", part, err.text);
	assert_int_equal(fd, -1);
}

LOCK_TEST(it_is_made_for_everybody)
{
	mode_t before = umask(077);
	int fd, second;

	assert_int_equal(lock_take(f->path, NULL, NULL, NULL, &fd, NULL), PRONY_OK);
	umask(before);
	assert_int_equal(mode_of(f->path), 0666);
	second = open(f->path, O_RDONLY | O_CLOEXEC);
	assert_int_not_equal(flock(second, LOCK_EX | LOCK_NB), 0);
	close(second);
	close(fd);
}

/* A file of another user keeps its mode. */
LOCK_TEST(one_that_is_there_stays_as_it_is)
{
	int fd;

	close(open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640));
	assert_int_equal(lock_take(f->path, NULL, NULL, NULL, &fd, NULL), PRONY_OK);
	assert_int_equal(mode_of(f->path), 0640);
	close(fd);
}

LOCK_TEST(only_a_file_with_one_name_will_do)
{
	assert_int_equal(mkfifo(f->path, 0666), 0);
	refused(f, "is a pipe");
	unlink(f->path);
	close(open(f->other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	assert_int_equal(link(f->other, f->path), 0);
	refused(f, "several names");
	assert_int_equal(mode_of(f->other), 0600);
	unlink(f->path);
	assert_int_equal(symlink(f->other, f->path), 0);
	refused(f, "is a link");
	unlink(f->path);
	assert_int_equal(mkdir(f->path, 0777), 0);
	refused(f, "is a directory");
}

/* fs.protected_regular: in a folder like /tmp, open with O_CREAT fails for an existing file of
 * another user. The linker replaces open with this wrapper (Meson uses 64-bit file offsets
 * everywhere). */
int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
static bool protected_regular;

int __wrap_open64(const char *path, int flags, ...)
{
	va_list arguments;

	va_start(arguments, flags);
	mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	if (protected_regular && (flags & O_CREAT) && file_exists(path)) {
		errno = EACCES;
		return -1;
	}
	return __real_open64(path, flags, mode);
}

LOCK_TEST(another_users_lock_is_opened)
{
	int fd;

	close(open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
	protected_regular = true;
	assert_true(open(f->path, O_RDONLY | O_CREAT | O_CLOEXEC, 0666) < 0);
	assert_int_equal(lock_take(f->path, NULL, NULL, NULL, &fd, NULL), PRONY_OK);
	protected_regular = false;
	close(fd);
}

/* A lock on a removed file must not count: the next process would not see it. */
static void remove_it(void *context, const char *path, const struct lock_holder *known)
{
	int *holder = context;

	assert_int_equal(known->pid, 0);
	unlink(path);
	close(*holder);
}

/* Waiting says who holds the lock, and again when that changes. */
static struct lock_holder seen[4];
static int seen_count;

static void look(void *context, const char *path, const struct lock_holder *holder)
{
	int *fd = context;

	(void)path;
	seen[seen_count++] = *holder;
	if (seen_count == 1)
		lock_say_holder(*fd, "about 12 min");
	else
		close(*fd);
}

LOCK_TEST(it_says_who_holds_it)
{
	int first, second;

	assert_int_equal(lock_take(f->path, NULL, NULL, NULL, &first, NULL), PRONY_OK);
	assert_int_equal(lock_take(f->path, NULL, look, &first, &second, NULL), PRONY_OK);
	assert_int_equal(seen_count, 2);
	assert_int_equal(seen[0].pid, getpid());
	assert_true(time(NULL) - seen[0].since_s < 3600 && *seen[0].user);
	assert_true(strncmp(seen[0].command, "test_lock", 9) == 0);
	assert_string_equal(seen[0].takes, "");
	assert_string_equal(seen[1].takes, "about 12 min");
	close(second);
}

LOCK_TEST(one_that_was_removed_is_none)
{
	int fd, holder = -1;

	assert_int_equal(lock_file_open(f->path, 0666, &holder, NULL), PRONY_OK);
	assert_int_equal(flock(holder, LOCK_EX | LOCK_NB), 0);
	assert_true(lock_file_stands(f->path, holder));
	assert_int_equal(lock_take(f->path, NULL, remove_it, &holder, &fd, NULL), PRONY_OK);
	assert_true(lock_file_stands(f->path, fd));
	close(fd);
}
