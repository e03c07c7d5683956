#include "install_fixture.h"

#include <signal.h>

#include "base/digest.h"
#include "client/guard.h"
#include "unit_test.h"
#include "wheel_fixture.h"

#define LINES_BYTES_MAX ((size_t)64 * 1024)

struct registry install_registry;

static void take_line(void *context, const char *text)
{
	struct strbuf *lines = context;

	strbuf_puts(lines, text);
	strbuf_putc(lines, '\n');
}

bool install_fixture_make(struct install_fixture *fixture)
{
	*fixture = (struct install_fixture){.stop = 0};
	fixture->sink = (struct install_sink){
		.line = take_line, .context = &fixture->lines, .stop = &fixture->stop};
	strbuf_init(&fixture->lines, LINES_BYTES_MAX);
	if (directory_make_temporary("prony-test-", &fixture->home, NULL) != PRONY_OK)
		return false;
	fixture->wheels = path_join(fixture->home, "wheels");
	setenv("XDG_DATA_HOME", fixture->home, 1);
	setenv("PIP_NO_INDEX", "1", 1);
	setenv("PIP_CONFIG_FILE", "/dev/null", 1);
	setenv("PIP_FIND_LINKS", fixture->wheels, 1);
	setenv("no_proxy", "127.0.0.1", 1);
	return true;
}

bool install_fixture_release(struct install_fixture *fixture)
{
	enum prony_status status = directory_remove(fixture->home, NULL);

	strbuf_release(&fixture->lines);
	free(fixture->wheels);
	free(fixture->home);
	return status == PRONY_OK;
}

void install_put_file(const char *folder, const char *name, const char *text)
{
	char *path = path_join(folder, name);
	char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));

	assert_int_equal(directory_make(parent, NULL), PRONY_OK);
	assert_int_equal(file_write_atomic(path, text, strlen(text), NULL), PRONY_OK);
	free(parent);
	free(path);
}

void install_write_lock(const struct install_fixture *fixture, const char *environment,
			const char *version, const char *sha256, const char *more)
{
	char *framework = strndup(environment, strcspn(environment, "@"));
	char *name = memory_printf("prony/locks/%s.txt", environment);
	char *text =
		memory_printf("# framework: %s\n# kind: unpack\n# version: %s\n"
			      "# pip-arguments: --no-deps --only-binary=:all:\n# keep: %s/*.so\n"
			      "# library: %s/lib%s.so\n%s%s==%s \\\n    --hash=sha256:%s\n",
			      framework, version, framework, framework, framework, more, framework,
			      version, sha256);

	install_put_file(fixture->home, name, text);
	free(text);
	free(name);
	free(framework);
}

void install_offer(const struct install_fixture *fixture, const char *name, const char *version,
		   const char *behaviour, const char *more)
{
	char sha256[DIGEST_HEX_BYTES], *library = memory_printf("%s/lib%s.so", name, name);

	wheel_write(fixture->wheels, name, version, library, behaviour, sha256);
	install_write_lock(fixture, name, version, sha256, more);
	free(library);
}

/* `program worker --adapter NAME --library FILE` */
static int play_worker(const char *name, const char *library, install_reply *play)
{
	const char *reply_fd = getenv("PRONY_REPLY_FD"), *request_fd = getenv("PRONY_REQUEST_FD");
	char text[256] = "", line[1024];
	FILE *file = fopen(library, "r");

	if (!file || !reply_fd || !request_fd || !fgets(text, sizeof(text), file))
		return 1;
	fclose(file);
	FILE *requests = fdopen((int)strtol(request_fd, NULL, 10), "r");
	FILE *replies = fdopen((int)strtol(reply_fd, NULL, 10), "w");
	while (requests && replies && fgets(line, sizeof(line), requests)) {
		json_auto_t *request = json_loads(line, 0, NULL);
		json_auto_t *reply = strcmp(json_string_or(request, "verb", ""), "close") == 0
					     ? json_pack("{s:O, s:b}", "id",
							 json_object_get(request, "id"), "ok", 1)
					     : play(request, name, text);
		char *words = reply ? json_dumps(reply, JSON_COMPACT) : NULL;

		fprintf(replies, "%s\n", words ? words : "this is no JSON");
		fflush(replies);
		free(words);
	}
	return 0;
}

int install_main(int argc, char **argv, install_reply *reply)
{
	if (argc >= 2 && strcmp(argv[1], "guard") == 0)
		return guard_main(argc - 1, argv + 1);
	if (argc == 6 && strcmp(argv[1], "worker") == 0)
		return play_worker(argv[3], argv[5], reply);
	signal(SIGPIPE, SIG_IGN);
	setenv("XDG_CONFIG_HOME", "/nowhere", 1);
	if (registry_load(&install_registry, NULL) != PRONY_OK)
		return 1;
	int failed = unit_tests_run(NULL, NULL);
	registry_release(&install_registry);
	return failed;
}

enum prony_status framework_install(const struct framework *framework, const char *environment,
				    const struct install_sink *sink, struct error *err)
{
	struct install_item item = {
		.framework = framework, .environment = environment, .error = ERROR_INIT};
	enum prony_status status = framework_install_many(&item, 1, 1, sink);

	if (err)
		*err = item.error;
	return status;
}
