// SPDX-License-Identifier: Apache-2.0
//
// A library that the loader of the agent's CLI takes in before anything else. It makes the process not
// dumpable, so that commands, which are the same user, cannot open its memory or its descriptors, and
// removes LD_PRELOAD, so that commands are programs like any other. It uses no library.
//
// The loader of glibc calls it with the arguments of main; others do not.

#if defined(__x86_64__)
static void notDumpable(void)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result)
		: "a"(157 /* prctl */), "D"(4 /* PR_SET_DUMPABLE */), "S"(0) : "rcx", "r11", "memory");
}
#elif defined(__aarch64__)
static void notDumpable(void)
{
	register long x8 __asm__("x8") = 167; // prctl
	register long x0 __asm__("x0") = 4;   // PR_SET_DUMPABLE
	register long x1 __asm__("x1") = 0;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
}
#else
#error "the guard does not know this processor"
#endif

static int begins(const char *s, const char *with)
{
	while (*with && *s == *with) s++, with++;
	return !*with;
}

__attribute__((used)) void begin(int argc, char **argv, char **env)
{
	(void)argc, (void)argv;
	notDumpable();
	char **to = env;
	for (; *env; env++)
		if (!begins(*env, "LD_PRELOAD=")) *to++ = *env;
	*to = 0;
}
