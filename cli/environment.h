/* What the environment decides, said where that may be somebody else's decision. */
#ifndef PRONY_CLI_ENVIRONMENT_H
#define PRONY_CLI_ENVIRONMENT_H

/*
 * Started by sudo: names on stderr the variables that decide which programs and libraries prony
 * starts and loads with root's rights, where they stand in the environment that the user handed on
 * (sudo -E, or a sudoers file that keeps them). They count: who may run prony as root may say so.
 */
void environment_say_sudo(void);

#endif
