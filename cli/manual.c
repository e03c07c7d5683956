/* `prony manual`: prints prony(1) as roff from the tables of the parser and of --help. */
#include <stdio.h>

#include "base/strbuf.h"
#include "cell/cell.h"
#include "cli/commands.h"

static const char head[] =
	".TH PRONY 1 \"\" \"prony " PRONY_VERSION "\" \"User Commands\"\n"
	".SH NAME\n"
	"prony \\- a dynamometer for deep\\-learning frameworks\n"
	".SH SYNOPSIS\n"
	".B prony\n"
	".I command\n"
	"[options] [arguments]\n"
	".SH DESCRIPTION\n"
	"prony runs the same network, with the same weights and the same data, in every "
	"deep\\-learning\n"
	"framework on a machine and reports what each delivers. It proves that all of them did the "
	"same\n"
	"work before it ranks them (the parity gate), says how sure it is (an interval over\n"
	"independent processes), and shows how much each costs over a floor: its own executor.\n"
	".PP\n"
	"What is measured is a cell: ";

static const char spelling[] =
	". A framework is written\n"
	".IR NAME [@ ENV ][: BACKEND ][+ OPTION ...],\n"
	"for example pytorch@2.15+channels_last. Lists take commas; batches take ranges as well:\n"
	"1..64*2 doubles, 16..64+16 adds.\n"
	".SH COMMANDS\n";

static const char tail[] =
	".SH EXIT STATUS\n"
	".TP\n"
	".B 0\n"
	"success\n"
	".TP\n"
	".B 1\n"
	"a cell that was requested by name is not ok (unsupported and missing do not count\n"
	"under \\-f all or a suite, unsupported not with \\-\\-allow unsupported), or no cell of "
	"the run is ok;\n"
	"in compare and run \\-\\-baseline: a cell is ok in A or the baseline, but not in B or "
	"this run; in show \\-\\-by node: a cell is not ok on a node, but on another one\n"
	".TP\n"
	".B 2\n"
	"compare, or run \\-\\-baseline, found something slower; show \\-\\-by node: a node is "
	"slow "
	"in both of its\nlast runs\n"
	".TP\n"
	".B 3\n"
	"compare, or run \\-\\-baseline without \\-\\-allow inconclusive, found nothing slower,\n"
	"but a cell is inconclusive; show \\-\\-by node: a node is slow in its only run\n"
	".TP\n"
	".B 64\n"
	"wrong usage\n"
	".TP\n"
	".B 65\n"
	"a suite, model or data file is invalid; a run does not exist or is not comparable\n"
	".TP\n"
	".B 70\n"
	"an error of prony itself\n"
	".TP\n"
	".B 74\n"
	"the store cannot be read or written\n"
	".TP\n"
	".B 130\n"
	"interrupted; the same command with \\-\\-resume continues\n"
	".SH ENVIRONMENT\n"
	".TP\n"
	".B PRONY_DATA\n"
	"folder of data sets\n"
	".TP\n"
	".B PRONY_LOCK\n"
	"file of the machine\\-wide lock that is held while measuring, and says by\n"
	"whom (default: /tmp/prony.lock, in a job of Slurm /tmp/prony.lock.NODE)\n"
	".TP\n"
	".B PRONY_PYTORCH_PYTHON\n"
	"interpreter that the framework pytorch uses (the same with other\n"
	"names in capitals)\n"
	".TP\n"
	".B PRONY_NATIVE_LIBRARY\n"
	"library that the framework native loads (likewise)\n"
	".TP\n"
	".B XDG_DATA_HOME\n"
	"where store, data sets and installed frameworks are, in prony/ below it\n"
	"(default: ~/.local/share)\n"
	".TP\n"
	".B PRONY_SHARED\n"
	"a second such folder, filled for all users, that is only read; without it\n"
	"prony/ below each of XDG_DATA_DIRS (default: /usr/local/share:/usr/share)\n"
	".TP\n"
	".B XDG_CACHE_HOME\n"
	"where passed gates and reference results are kept, in prony/ below it\n"
	"(default: ~/.cache)\n"
	".TP\n"
	".B NO_COLOR\n"
	"no colours in tables\n"
	".SH FILES\n"
	".TP\n"
	".I $XDG_DATA_HOME/prony/prony.db\n"
	"the store of results (SQLite)\n"
	".TP\n"
	".I $XDG_DATA_HOME/prony/frameworks/\n"
	"installed frameworks, each in an environment of its own\n"
	".TP\n"
	".I $XDG_DATA_HOME/prony/data/\n"
	"data sets\n"
	".TP\n"
	".I $XDG_CONFIG_HOME/prony/frameworks/NAME.yaml\n"
	"frameworks of your own (default: ~/.config)\n"
	".SH EXAMPLES\n"
	".TP\n"
	".B prony run quickstart\n"
	"LeNet on real MNIST in every framework found\n"
	".TP\n"
	".B prony run \\-f native,pytorch \\-n lenet \\-b 1..256*4 \\-s forward,train\n"
	"how the overhead over the floor changes with the batch\n"
	".TP\n"
	".B prony report \\-o report.html\n"
	"one page with charts of the newest run\n"
	".TP\n"
	".B prony report \\-\\-figures figures\n"
	"its figures as SVG and CSV, for a paper\n"
	".TP\n"
	".B prony export \\-\\-format csv \\-\\-layout ms\n"
	"Timestamp,Framework,Algorithm,BenchStage,Precision,Result\n";

int command_manual(const struct cli_call *call, struct error *err)
{
	(void)err;
	struct strbuf page;
	strbuf_init(&page, 0);
	strbuf_puts(&page, head);
	for (int id = 0; id < AXIS_COUNT; id++)
		strbuf_printf(&page, "%s%s", id ? ", " : "", axes[id].singular);
	strbuf_puts(&page, spelling);
	for (const struct cli_command *row = call->rows; row->run; row++)
		if (!row->hidden)
			options_manual(&row->syntax, &page);
	strbuf_puts(&page, ".SH STATUSES\nHow a cell can end: ");
	for (int status = CELL_OK; status < CELL_STATUS_COUNT; status++)
		strbuf_printf(&page, "%s%s", status == CELL_OK ? "" : ", ",
			      cell_status_name((enum cell_status)status));
	strbuf_puts(&page, ".\n");
	strbuf_puts(&page, tail);
	cli_page(strbuf_text(&page));
	strbuf_release(&page);
	return 0;
}
