/* The one flag that a signal handler may set to end a recording early. */
#include "session/session.h"

#include <signal.h>

static volatile sig_atomic_t interrupted;

void rg_session_interrupt(void)
{
	interrupted = 1;
}

bool rg_session_interrupted(void)
{
	return interrupted != 0;
}
