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
	".TP\n.B 0\nsuccess\n"
	".TP\n.B 1\na cell that was asked for by name did not end ok (unsupported and missing do "
	"not count\n"
	"under \\-f all or a suite, unsupported not with \\-\\-allow unsupported), or no cell of "
	"the run did;\n"
	"in compare and run \\-\\-baseline: a cell that is ok in A, the baseline, is not in B\n"
	".TP\n.B 2\ncompare, or run \\-\\-baseline, found something slower\n"
	".TP\n.B 3\ncompare, or run \\-\\-baseline without \\-\\-allow inconclusive, found nothing "
	"slower,\n"
	"but cannot tell of a cell\n"
	".TP\n.B 64\nwrong usage\n"
	".TP\n.B 65\na suite, model or data file is wrong; a run is not there, or cannot be "
	"compared\n"
	".TP\n.B 70\nan error of prony itself\n"
	".TP\n.B 74\nthe store cannot be read or written\n"
	".TP\n.B 130\ninterrupted; the same command with \\-\\-resume goes on\n"
	".SH ENVIRONMENT\n"
	".TP\n.B PRONY_DATA\nfolder of data sets\n"
	".TP\n.B PRONY_LOCK\nfile of the machine\\-wide lock that is held while measuring\n"
	".TP\n.B PRONY_PYTORCH_PYTHON\ninterpreter that the framework pytorch uses (the same with "
	"other\n"
	"names in capitals)\n"
	".TP\n.B PRONY_NATIVE_LIBRARY\nlibrary that the framework native loads (likewise)\n"
	".TP\n.B XDG_DATA_HOME\nwhere store, data sets and installed frameworks are, in prony/ "
	"below it\n"
	"(default: ~/.local/share)\n"
	".TP\n.B XDG_CACHE_HOME\nwhere gates that passed and answers of the reference are, in "
	"prony/ "
	"below it\n"
	"(default: ~/.cache)\n"
	".TP\n.B NO_COLOR\nno colours in tables\n"
	".SH FILES\n"
	".TP\n.I $XDG_DATA_HOME/prony/prony.db\nthe store of results (SQLite)\n"
	".TP\n.I $XDG_DATA_HOME/prony/frameworks/\ninstalled frameworks, each in an environment of "
	"its own\n"
	".TP\n.I $XDG_DATA_HOME/prony/data/\ndata sets\n"
	".TP\n.I $XDG_CONFIG_HOME/prony/frameworks/NAME.yaml\nframeworks of your own (default: "
	"~/.config)\n"
	".SH EXAMPLES\n"
	".TP\n.B prony run quickstart\nLeNet on real MNIST in every framework found\n"
	".TP\n.B prony run \\-f native,pytorch \\-n lenet \\-b 1..256*4 \\-s forward,train\n"
	"how the overhead over the floor changes with the batch\n"
	".TP\n.B prony report \\-o report.html\none page with charts of the newest run\n"
	".TP\n.B prony report \\-\\-figures figures\nits figures as SVG and CSV, for a paper\n"
	".TP\n.B prony export \\-\\-format csv \\-\\-layout "
	"ms\nTimestamp,Framework,Algorithm,BenchStage,"
	"Precision,Result\n";

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
