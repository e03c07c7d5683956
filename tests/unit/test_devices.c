/* Tests devices.yaml: the tree's own rows, rows of users before them, and the messages for wrong
 * ones. */
#include "report/devices.h"
#include "unit_test.h"

TEST(test_tree)
{
	struct device_table table;
	struct error err = ERROR_INIT;
	char *path = test_keep(path_join(getenv("PRONY_SOURCE"), "devices.yaml"));
	check(devices_load(path, &table, &err), &err);
	const struct device_row *row = devices_find(&table, "NVIDIA H200");
	assert_non_null(row);
	assert_true(row->memory_gib == 141 && row->peak_tflops[PRECISION_TF32] == 494);
	assert_true(isnan(row->hourly));
	assert_non_null(devices_find(&table, "Intel(R) Xeon(R) CPU E5-2620 v2 @ 2.10GHz"));
	assert_null(devices_find(&table, "AMD EPYC"));
	assert_null(devices_find(&table, ""));
	devices_release(&table);
}

TEST(test_money)
{
	struct device_table table;
	struct error err = ERROR_INIT;
	char *path = test_file("devices.yaml",
			       "devices:\n  - {name: mine, match: EPYC, hourly: 0.5, currency: "
			       "EUR, peak_tflops: {bf16: 2}}\n");
	check(devices_load(path, &table, &err), &err);
	const struct device_row *row = devices_find(&table, "amd epyc 9004");
	assert_non_null(row);
	assert_true(devices_samples_per_money(row, 100) == 720000);
	assert_true(isnan(row->retail) && row->peak_tflops[PRECISION_BF16] == 2);
	devices_release(&table);
}

TEST(test_wrong)
{
	static const char *const rows[][2] = {
		{"device: []\n", "devices.yaml:1: "},
		{"devices: 3\n", "needs a list"},
		{"devices:\n  - 3\n", "devices.yaml:2: "},
		{"devices:\n  - {name: a}\n", "needs the key match"},
		{"devices:\n  - {name: a, match: b, retail: 5}\n", "currency"},
		{"devices:\n  - {name: a, match: b, cores: many}\n",
		 "cores: needs a number above 0"},
		{"devices:\n  - {name: a, match: b, cores: -1}\n", "cores: needs a number above 0"},
		{"devices:\n  - {name: a, match: b, core: 1}\n", "cores"},
		{"devices:\n  - {name: a, match: []}\n", "match: needs"},
		{"devices:\n  - {name: a, match: ''}\n", "match: needs"},
		{"devices:\n  - {name: a, match: b, peak_tflops: {fp33: 1}}\n", "fp32"},
		{"devices:\n  - {name: a, match: b, peak_tflops: 1}\n", "needs a mapping"},
		{"devices: [\n", "devices.yaml:"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct device_table table;
		struct error err = ERROR_INIT;
		char *path = test_file("devices.yaml", rows[i][0]);
		expect_error(devices_load(path, &table, &err), PRONY_BAD_INPUT, &err, rows[i][1]);
	}
}
