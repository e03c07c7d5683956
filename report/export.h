/* Exports: csv (long, cells, wide, ms), json, jsonl, md, latex, bmf, github, openmetrics. The same
 * store always gives the same bytes. */
#ifndef PRONY_REPORT_EXPORT_H
#define PRONY_REPORT_EXPORT_H

#include "base/strbuf.h"
#include "report/summary.h"

/*
 * csv long: a row per process, every field of PROCESS_FIELDS with the cell's axes in front.
 * csv cells: a row per cell: axes, how it ended, rank, number of processes, estimates.
 * csv wide: a row per comparison (network, dataset, stage, ...), a column per framework
 *           (step time in ms, geometric mean of process means).
 * csv ms:   Timestamp,Framework,Algorithm,BenchStage,Precision,Result; ok cells only; forward ->
 *           eval, train -> train, others left out; Result = ms per step, geometric mean.
 * jsonl:    the complete export: a line for the run, each cell, each process with intervals, log
 *           and series.
 * latex:    a table of booktabs for each comparison.
 * bmf, github, openmetrics: cells that are ok and comparable, for Bencher (Bencher Metric Format),
 *           github-action-benchmark (customSmallerIsBetter) and Prometheus (OpenMetrics 1.0 text).
 * Fields are quoted only where needed (RFC 4180).
 *
 * The first line of csv (the heading) and of jsonl (the run) does not depend on the cells, so a
 * large run can be exported by comparisons (report/stream.h), without that line after the first.
 */
enum prony_status export_csv_long(const struct summary *summary, struct strbuf *out,
				  struct error *err);
enum prony_status export_csv_cells(const struct summary *summary, struct strbuf *out,
				   struct error *err);
enum prony_status export_csv_wide(const struct summary *summary, struct strbuf *out,
				  struct error *err);
enum prony_status export_csv_ms(const struct summary *summary, struct strbuf *out,
				struct error *err);
enum prony_status export_json(const struct summary *summary, struct strbuf *out, struct error *err);
enum prony_status export_jsonl(const struct summary *summary, struct strbuf *out,
			       struct error *err);
enum prony_status export_markdown(const struct summary *summary, struct strbuf *out,
				  struct error *err);
enum prony_status export_latex(const struct summary *summary, struct strbuf *out,
			       struct error *err);

enum prony_status export_bmf(const struct summary *summary, struct strbuf *out, struct error *err);
enum prony_status export_github(const struct summary *summary, struct strbuf *out,
				struct error *err);
enum prony_status export_openmetrics(const struct summary *summary, struct strbuf *out,
				     struct error *err);

/* Every export ends with this call: text that did not fit is an error, never a shorter file. */
enum prony_status export_finish(const struct strbuf *out, struct error *err);

#endif
