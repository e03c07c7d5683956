/* What `prony run --launch` and `prony agent` say to each other over the agent's standard streams.
 *
 * The parent writes lines: the request, then "go", later "stop" (end the run, keep its results) and
 * "done" (the store is imported and needed no more). The request is a JSON object: `words` of
 * `prony run`, `store` (the name of the agent's store), `directory`, and `frameworks`, whose
 * versions are wanted. The agent writes frames, each a line "KIND LENGTH", that many bytes and a
 * line break, without which srun would keep them: `hello` (a JSON object: `sha256` and `version` of
 * prony, and `frameworks`), `text` of the run's standard error, `beat` (empty) in each second
 * without another one, `store` (the file), `end` (the run's exit code). */
#ifndef PRONY_CLI_AGENT_H
#define PRONY_CLI_AGENT_H

#include "base/strbuf.h"
#include "frameworks/registry.h"

enum {
	AGENT_BEAT_MS = 1000,
	AGENT_CHUNK_BYTES = 1 << 16, /* the longest text */
	AGENT_LINE_BYTES_MAX = 1 << 20
};

/* Adds the version of a framework ("missing" without one), for the floor with the SHA-256 of its
 * library: equal texts measure the same. */
void agent_framework_text(const struct framework_location *place, struct strbuf *out);

#endif
