/* Warns about environment variables when prony runs under sudo. */
#ifndef PRONY_CLI_ENVIRONMENT_H
#define PRONY_CLI_ENVIRONMENT_H

/* Under sudo, prints to stderr the variables from the user's environment (sudo -E, or a sudoers
 * file that keeps them) that decide which programs and libraries prony runs as root. They are used:
 * whoever may run prony as root may set them. */
void environment_say_sudo(void);

#endif
