/* Private to report/: what the forms share. */
#ifndef PRONY_REPORT_FORM_INTERNAL_H
#define PRONY_REPORT_FORM_INTERNAL_H

#include "report/form.h"

#define FORM_NS 1e-9 /* seconds */

/* Ends of rows in rows of cells: process p of a cell that may be shown and ended ok, or NULL. */
const struct process_record *form_process(const struct stored_cell *cell, size_t p);

/* "# tensorflow 2.21.0, alexnet-tf, batch 128, cpu, fp32, process 1 of 3"; for cells without a good
 * process their status and reason instead of it. */
void form_heading(const struct stored_cell *cell, size_t p, struct strbuf *out);

/* Seconds of step i of a process whose steps were waited for one by one. */
double form_step(const struct process_record *record, size_t i);
/* Whether they were; else says so. */
bool form_has_steps(const struct process_record *record, struct strbuf *out);

/* Seconds in the timed steps of a process; steps are record->steps. */
double form_timed(const struct process_record *record);
/* Total images a second, the mean over processes; NaN without one. */
double form_total_speed(const struct stored_cell *cell);

/* One process, and what comes after all of them. */
void form_alexnet(const struct stored_cell *cell, const struct process_record *record,
		  const struct form_layers *layers, struct strbuf *out);
void form_cnn(const struct stored_cell *cell, const struct process_record *record,
	      struct strbuf *out);
void form_cnn_tables(const struct stored_run *run, struct strbuf *out);

#endif
