#include "client_fixture.h"

#include <signal.h>

#include "client/guard.h"
#include "unit_test.h"

bool client_fixture_guard(int argc, char **argv, int *exit_code)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2 || strcmp(argv[1], "guard") != 0)
		return false;
	*exit_code = guard_main(argc - 1, argv + 1);
	return true;
}

static void init(struct peer *peer)
{
	memset(peer, 0, sizeof *peer);
	peer->self = path_self();
	assert_int_equal(directory_make_temporary("prony-client-", &peer->folder, NULL), PRONY_OK);
	peer->folder_row = memory_printf("FOLDER=%s", peer->folder);
	peer->environment[0] = peer->folder_row;
	peer->spec = (struct client_spec){
		.argv = peer->argv,
		.environment = peer->environment,
		.self = peer->self,
		.bundle = peer->folder,
		.tensors_bytes = 65536,
		.records_capacity = 64,
		.timeout_ns = 120 * SECOND_NS, /* only stops a hang */
	};
}

void peer_init_script(struct peer *peer, const char *script)
{
	init(peer);
	peer->argv[0] = "sh";
	peer->argv[1] = "-c";
	peer->argv[2] = script;
}

void peer_init_self(struct peer *peer, const char *mode)
{
	init(peer);
	peer->argv[0] = peer->self;
	peer->argv[1] = "worker";
	peer->argv[2] = mode;
}

void peer_start(struct peer *peer)
{
	check(client_start(&peer->spec, &peer->client, &peer->err), &peer->err);
	assert_true(client_started_ns(peer->client) > 0);
}

struct client_end peer_end(struct peer *peer)
{
	struct client_end end = {0};

	client_end(peer->client, &end);
	free(end.log);
	end.log = NULL;
	assert_int_equal(directory_remove(peer->folder, NULL), PRONY_OK);
	free(peer->folder_row);
	free(peer->folder);
	free(peer->self);
	return end;
}

void peer_error(struct peer *peer, enum prony_status is, enum prony_status wanted, const char *part)
{
	if (is != wanted || (part && !strstr(peer->err.text, part)))
		fail_msg("%s: '%s' instead of %s: '%s'", prony_status_text(is), peer->err.text,
			 prony_status_text(wanted), part ? part : "");
	error_clear(&peer->err);
}

void peer_ask(struct peer *peer, enum protocol_verb verb, enum prony_status status,
	      const char *part)
{
	peer_error(peer, client_request(peer->client, verb, NULL, 0, NULL, NULL, NULL, &peer->err),
		   status, part);
}

void peer_hello(struct peer *peer, enum prony_status status, const char *part)
{
	peer_ask(peer, VERB_HELLO, status, part);
}
