/* Tests damaged installations: the damage is found with the manifest, and repaired. */
#include "base/digest.h"
#include "frameworks/install_internal.h"
#include "install_fixture.h"
#include "samples/protocol.h"
#include "unit_test.h"
#include "wheel_fixture.h"

struct fixture {
	struct install_fixture install;
	char *folder;
};

static json_t *play(const json_t *request, const char *name, const char *library)
{
	(void)library;
	return json_pack("{s:O, s:b, s:i, s:s, s:s}", "id", json_object_get(request, "id"), "ok", 1,
			 "protocol", PROTOCOL_VERSION, "name", name, "version", "9.9");
}

static int set_up(void **state)
{
	struct fixture *fixture = memory_alloc(sizeof(*fixture));

	if (!install_fixture_make(&fixture->install))
		return -1;
	fixture->folder = path_join(fixture->install.home, "prony/frameworks/mxnet");
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	bool gone = install_fixture_release(&fixture->install);

	free(fixture->folder);
	free(fixture);
	return gone ? 0 : -1;
}

#define INSTALL_TEST(name) TEST_ON(name, set_up, tear_down, struct fixture *fixture)

/* Requires that the fault names a file, and that a second installation repairs it. */
static void assert_mended(struct fixture *fixture, const struct framework *mxnet, const char *fault)
{
	struct framework_location place;
	struct error err = ERROR_INIT;
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	assert_int_equal(framework_locate(mxnet, "", &arena, &place, NULL), PRONY_OK);
	assert_int_equal(place.origin, ORIGIN_INSTALLED);
	assert_has(framework_fault(&place, &arena), fault);
	strbuf_clear(&fixture->install.lines);
	check(framework_install(mxnet, "", &fixture->install.sink, &err), &err);
	assert_has(strbuf_text(&fixture->install.lines), "installed in");
	assert_null(framework_fault(&place, &arena));
}

static void delete (const struct fixture *fixture, const char *name)
{
	char *path = test_keep(path_join(fixture->folder, name));

	assert_int_equal(unlink(path), 0);
}

/*
 * Removes the files from the manifest, as in older installations, which counted only whole files.
 */
static void forget_files(const struct fixture *fixture)
{
	char *path = test_keep(path_join(fixture->folder, MANIFEST_NAME));
	json_auto_t *document = NULL;

	assert_int_equal(json_read_file(path, MANIFEST_BYTES_MAX, &document, NULL), PRONY_OK);
	assert_int_equal(json_object_size(json_object_get(document, "files")), 4);
	assert_int_equal(json_object_del(document, "files"), 0);
	assert_int_equal(json_dump_file(document, path, 0), 0);
}

/* Covers every file from a wheel and every repaired file. */
INSTALL_TEST(damage_is_found_and_mended)
{
	struct framework_repair steps[] = {
		{.kind = REPAIR_SYMLINK, .why = "a", .path = "mx*t/liba.so.1", .text = "/nowhere"},
		{.kind = REPAIR_WRITE_FILE, .why = "b", .path = "etc/mx.cfg", .text = "quiet\n"},
	};
	struct framework mxnet = *framework_find(&install_registry, "mxnet", NULL);
	char sha256[DIGEST_HEX_BYTES],
		*library = test_keep(path_join(fixture->folder, "mxnet/libmxnet.so"));

	wheel_write(fixture->install.wheels, "second", "1", "mxnet/libsecond.so", "more", sha256);
	char *more = test_text("# disk-mb: 1\nsecond==1 --hash=sha256:%s\n", sha256);
	install_offer(&fixture->install, "mxnet", "9.9", "good", more);
	mxnet.repairs = steps;
	mxnet.repair_count = COUNT(steps);
	assert_int_equal(framework_install(&mxnet, "", &fixture->install.sink, NULL), PRONY_OK);
	assert_int_equal(truncate(library, 2), 0);
	assert_mended(fixture, &mxnet, "mxnet/libmxnet.so has 2 bytes instead of 4");
	delete (fixture, "mxnet/libsecond.so");
	assert_mended(fixture, &mxnet, "mxnet/libsecond.so is missing");
	delete (fixture, "mxnet/liba.so.1");
	assert_mended(fixture, &mxnet, "mxnet/liba.so.1 is missing");
	delete (fixture, "etc/mx.cfg");
	assert_mended(fixture, &mxnet, "etc/mx.cfg is missing");

	forget_files(fixture);
	delete (fixture, "etc/mx.cfg");
	strbuf_clear(&fixture->install.lines);
	assert_int_equal(framework_install(&mxnet, "", &fixture->install.sink, NULL), PRONY_OK);
	assert_has(strbuf_text(&fixture->install.lines), "9.9 is already installed");
}

/* Files that pip installed have their own lists. */
INSTALL_TEST(an_environment_lists_its_repairs)
{
	struct framework_repair step = {
		.kind = REPAIR_WRITE_FILE, .why = "b", .path = "etc/mx.cfg", .text = "quiet\n"};
	struct framework mxnet = *framework_find(&install_registry, "mxnet", NULL);
	struct manifest manifest = {.entry = ""};
	struct install install;

	mxnet.repairs = &step;
	mxnet.repair_count = 1;
	assert_int_equal(install_begin(&install, &mxnet, "", &fixture->install.sink, NULL),
			 PRONY_OK);
	install.lock.kind = LOCK_VENV;
	install_put_file(install.tree, "lib/package.py", "pip's");
	assert_int_equal(install_repair(&install, NULL), PRONY_OK);
	assert_int_equal(install_list_files(&install, &manifest, NULL), PRONY_OK);
	assert_int_equal(manifest.file_count, 1);
	assert_string_equal(manifest.files[0].path, "etc/mx.cfg");
	assert_int_equal(manifest.files[0].bytes, 6);
	assert_null(framework_files_fault(install.tree, &manifest, &install.arena));
	install_put_file(install.tree, "etc/mx.cfg", "loud\n");
	assert_has(framework_files_fault(install.tree, &manifest, &install.arena),
		   "etc/mx.cfg has 5 bytes instead of 6");
	assert_int_equal(directory_remove(install.staging, NULL), PRONY_OK);
	install_end(&install, PRONY_INTERRUPTED);
}

int main(int argc, char **argv)
{
	return install_main(argc, argv, play);
}
