// SPDX-License-Identifier: Apache-2.0
//
// The first program of a cell: it prepares its own process and then becomes the program that was
// asked for. It uses no library, so that it needs nothing of the file system it finds itself in.
//
//   helper [option value]... -- PROGRAM [argument]...
//   helper [option value]... -w
//
// Options, in any order but for -i; numbers are decimal, descriptors above 0:
//
//   -i FD           stay as the first process of the PID namespace, and do the rest in a child; the first option
//   -s FD           report on this SOCK_SEQPACKET socket
//   -l A.B.C.D:PORT open a TCP listener here (at most 16)
//   -r RES:VALUE    set resource limit RES, soft and hard, to VALUE, or to the hard limit if lower
//   -p FD           apply this Landlock ruleset
//   -f FD           install the seccomp filter (an array of struct sock_filter) read from here
//   -d FD           make this folder the working directory
//   -m MAJOR:MINOR:INODE:READONLY:PATH
//                   end unless PATH is this file or folder and, if READONLY is 1, cannot be written
//   -g 1            send the mount namespace after the listeners, then wait for a message on the socket
//   -n FD           enter this mount namespace, with the user namespace that owns it
//   -o PATH:DATA    change the options of the file system mounted at PATH
//   -w              instead of running a program, wait until stdin ends, then exit with 0
//
// The order in which things happen is fixed: everything else in the order of the options, no new privileges,
// Landlock, report and wait, closing of all descriptors above 2, filter, execve. PROGRAM is an absolute path; it gets the
// environment as it is.
//
// Reports: one message "L" that carries all listeners, if any, in order, and the mount namespace if -g is
// given, then the end of the socket
// when the program runs; or a message "E", one byte errno, and what failed. Failures are told on stderr too,
// and end with exit code 127.

typedef unsigned long ulong;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

enum { MAX_LISTENERS = 16, MAX_SENT = MAX_LISTENERS + 1, MAX_FILTER = 4096 * 8, FAILED = 127, KILLED = 128 + 9 };

#if defined(__x86_64__)
enum {
	NR_read = 0, NR_write = 1, NR_close = 3, NR_ioctl = 16, NR_fchdir = 81, NR_fstatfs = 138, NR_mount = 165,
	NR_openat = 257, NR_setns = 308, NR_statx = 332, NR_rt_sigprocmask = 14, NR_socket = 41, NR_sendmsg = 46, NR_bind = 49,
	NR_listen = 50, NR_setsockopt = 54, NR_clone = 56, NR_execve = 59, NR_wait4 = 61, NR_fcntl = 72,
	NR_prctl = 157, NR_exit_group = 231, NR_ppoll = 271, NR_signalfd4 = 289, NR_dup3 = 292,
	NR_prlimit64 = 302, NR_close_range = 436, NR_landlock_restrict_self = 446,
};
__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall begin\n");

static long call5(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long result;
	__asm__ volatile("syscall" : "=a"(result)
		: "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
enum {
	NR_ioctl = 29, NR_mount = 40, NR_fstatfs = 44, NR_fchdir = 50, NR_openat = 56, NR_close = 57, NR_setns = 268,
	NR_statx = 291, NR_dup3 = 24, NR_fcntl = 25, NR_read = 63, NR_write = 64, NR_ppoll = 73, NR_signalfd4 = 74,
	NR_exit_group = 94, NR_rt_sigprocmask = 135, NR_prctl = 167, NR_socket = 198, NR_bind = 200,
	NR_listen = 201, NR_setsockopt = 208, NR_sendmsg = 211, NR_clone = 220, NR_execve = 221,
	NR_wait4 = 260, NR_prlimit64 = 261, NR_close_range = 436, NR_landlock_restrict_self = 446,
};
__asm__(".globl _start\n_start:\n\tmov x0, sp\n\tbl begin\n");

static long call5(long nr, long a, long b, long c, long d, long e)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
	return x0;
}
#else
#error "the helper does not know this processor"
#endif

#define CALL(nr, a, b, c, d) call5(NR_##nr, (long)(a), (long)(b), (long)(c), (long)(d), 0)

struct span { void *base; ulong len; };
struct message { void *name; u32 namelen; struct span *span; ulong spans; void *control; ulong controllen; int flags; };
struct rights { ulong len; int level, type; int fds[MAX_SENT]; };
struct address { u16 family; u8 port[2]; u8 ip[4]; u8 zero[8]; };
struct limit { ulong soft, hard; };
struct program { u16 len; void *code; };
struct watch { int fd; short events, happened; };
struct duration { long seconds, nanoseconds; };
// The parts of struct statx and struct statfs that are looked at, at the kernel's offsets.
struct identity { u8 before[32]; ulong inode; u8 between[96]; u32 major, minor; u8 after[112]; };
struct system { ulong before[10]; ulong flags; ulong after[4]; };

// A descriptor that was not given is zero: without initial values, the file needs no data segment.
static int report, ruleset, filter, listeners, instructions, held;
static struct rights rights;
static u8 code[MAX_FILTER];

static ulong length(const char *s)
{
	ulong n = 0;
	while (s[n]) n++;
	return n;
}

static void say(const char *s) { CALL(write, 2, s, length(s), 0); }

static void sayNumber(u32 n)
{
	char digits[12], *p = digits + 11;
	*p = 0;
	do *--p = '0' + n % 10; while (n /= 10);
	say(p);
}

static long tell(struct span *spans, ulong n, void *control, ulong controllen)
{
	struct message m;
	m.name = 0, m.namelen = 0, m.span = spans, m.spans = n;
	m.control = control, m.controllen = controllen, m.flags = 0;
	return CALL(sendmsg, report, &m, 0x4000 /* MSG_NOSIGNAL */, 0);
}

__attribute__((noreturn)) static void leave(int status)
{
	for (;;) CALL(exit_group, status, 0, 0, 0);
}

// fail ends the helper: what failed, on which value, and why.
__attribute__((noreturn)) static void fail(const char *what, const char *value, long result)
{
	u8 head[2] = { 'E', (u8)-result };
	struct span spans[] = { { head, 2 }, { (void *)what, length(what) }, { (void *)value, length(value) } };
	if (report) tell(spans, 3, 0, 0);
	say("drover cell: ");
	say(what);
	say(value);
	say(": error ");
	sayNumber((u32)-result);
	say("\n");
	leave(FAILED);
}

// number reads decimal digits and moves past them and past the separator after them.
static ulong number(const char **s, char separator, const char *whole)
{
	ulong n = 0;
	const char *p = *s;
	if (*p < '0' || *p > '9') fail("bad argument ", whole, -22 /* EINVAL */);
	while (*p >= '0' && *p <= '9') n = n * 10 + (*p++ - '0');
	if (*p != separator) fail("bad argument ", whole, -22);
	*s = p + (separator != 0);
	return n;
}

static ulong only(const char *s)
{
	const char *p = s;
	return number(&p, 0, s);
}

static const ulong childSignal = 1ul << (17 - 1); // SIGCHLD

// watch is the first process until it ends: with the program's status when the program ends, or when the
// host's pipe does, which is descriptor 0. Signals are on 1. A failure ends it too: the kernel then ends
// everything else in the namespace.
__attribute__((noreturn)) static void watch(long program)
{
	struct watch on[] = { { 0, 1 /* POLLIN */, 0 }, { 1, 1, 0 } };
	struct duration none = { 0, 0 };
	for (long reaped = 0;;) {
		int status = 0;
		long result = call5(NR_ppoll, (long)on, 2, reaped > 0 ? (long)&none : 0, 0, 8);
		if (result < 0 && result != -4 /* EINTR */) leave(FAILED);
		if (on[0].happened) leave(KILLED);
		if (on[1].happened) CALL(read, 1, code, sizeof code, 0);
		reaped = CALL(wait4, -1, &status, 1 /* WNOHANG */, 0);
		if (reaped == program) leave(status & 127 ? 128 + (status & 127) : status >> 8 & 255);
	}
}

// stayFirst leaves this process behind as the first one of the namespace, and returns in a child. The first
// process holds nothing but a pipe of the host, and is not dumpable: its memory and descriptors are out of
// reach of the others, which are the same user.
static void stayFirst(int pipe)
{
	long result = CALL(prctl, 4 /* PR_SET_DUMPABLE */, 0, 0, 0);
	if (result >= 0) result = CALL(rt_sigprocmask, 0 /* SIG_BLOCK */, &childSignal, 0, 8);
	if (result >= 0) result = CALL(clone, 17 /* SIGCHLD */, 0, 0, 0);
	if (result < 0) fail("leaving a first process behind", "", result);
	if (result == 0) {
		CALL(rt_sigprocmask, 1 /* SIG_UNBLOCK */, &childSignal, 0, 8);
		return;
	}
	if (CALL(dup3, pipe, 0, 0, 0) < 0 || CALL(close_range, 1, ~0u, 0, 0) < 0) leave(FAILED);
	if (CALL(signalfd4, -1, &childSignal, 8, 0) != 1) leave(FAILED);
	watch(result);
}

static void openListener(const char *value)
{
	struct address a = { .family = 2 /* AF_INET */ };
	const char *p = value;
	if (listeners == MAX_LISTENERS) fail("too many listeners: ", value, -7 /* E2BIG */);
	for (int i = 0; i < 4; i++) a.ip[i] = number(&p, i < 3 ? '.' : ':', value);
	ulong port = number(&p, 0, value);
	a.port[0] = port >> 8, a.port[1] = port;
	int on = 1;
	long fd = CALL(socket, 2, 1 | 02000000 /* SOCK_STREAM, SOCK_CLOEXEC */, 0, 0);
	long result = fd;
	if (result >= 0) result = call5(NR_setsockopt, fd, 1, 2 /* SO_REUSEADDR */, (long)&on, sizeof on);
	if (result >= 0) result = CALL(bind, fd, &a, sizeof a, 0);
	if (result >= 0) result = CALL(listen, fd, 4096, 0, 0);
	if (result < 0) fail("listening on ", value, result);
	rights.fds[listeners++] = fd;
}

static void setLimit(const char *value)
{
	const char *p = value;
	ulong resource = number(&p, ':', value), wanted = number(&p, 0, value);
	struct limit l;
	long result = CALL(prlimit64, 0, resource, 0, &l);
	if (result >= 0) {
		if (l.hard > wanted) l.hard = wanted;
		l.soft = l.hard;
		result = CALL(prlimit64, 0, resource, &l, 0);
	}
	if (result < 0) fail("setting resource limit ", value, result);
}

static void enterFolder(const char *value)
{
	long result = CALL(fchdir, only(value), 0, 0, 0);
	if (result < 0) fail("entering the working directory", "", result);
}

// checkMount ends the helper unless a path is what was to be mounted there. What is looked at is held open,
// so that the answers are about one thing.
static void checkMount(const char *value)
{
	struct identity is;
	struct system on;
	const char *p = value;
	ulong major = number(&p, ':', value), minor = number(&p, ':', value);
	ulong inode = number(&p, ':', value), readOnly = number(&p, ':', value);
	long fd = CALL(openat, -100 /* AT_FDCWD */, p, 012000000 /* O_PATH, O_CLOEXEC */, 0);
	long result = fd;
	if (result >= 0) result = call5(NR_statx, fd, (long)"", 0x1000 /* AT_EMPTY_PATH */, 0x100 /* STATX_INO */, (long)&is);
	if (result >= 0) result = CALL(fstatfs, fd, &on, 0, 0);
	if (result < 0) fail("looking at the mount ", p, result);
	if (is.inode != inode || is.major != major || is.minor != minor) fail("another file than was checked is mounted at ", p, -116 /* ESTALE */);
	if (readOnly && !(on.flags & 1 /* ST_RDONLY */)) fail("not mounted read-only: ", p, -116);
	CALL(close, fd, 0, 0, 0);
}

static void enterNamespace(const char *value)
{
	int mounts = only(value);
	long user = CALL(ioctl, mounts, 0xb701 /* NS_GET_USERNS */, 0, 0);
	long result = user;
	if (result >= 0) result = CALL(setns, user, 0, 0, 0);
	if (result >= 0) result = CALL(setns, mounts, 0, 0, 0);
	if (result < 0) fail("entering the mount namespace ", value, result);
}

static void changeMount(char *value)
{
	ulong n = 0;
	while (value[n] && value[n] != ':') n++;
	if (!value[n]) fail("bad argument ", value, -22);
	value[n] = 0;
	long result = call5(NR_mount, 0, (long)value, 0, 38 /* MS_REMOUNT, MS_NOSUID, MS_NODEV */, (long)(value + n + 1));
	if (result < 0) fail("changing the mount ", value, result);
}

static void handOut(void)
{
	struct span s = { "L", 1 };
	int sent = listeners;
	if (held) {
		long fd = CALL(openat, -100, "/proc/self/ns/mnt", 02000000 /* O_CLOEXEC */, 0);
		if (fd < 0) fail("opening the mount namespace", "", fd);
		rights.fds[sent++] = fd;
	}
	rights.len = 16 + 4 * sent, rights.level = 1 /* SOL_SOCKET */, rights.type = 1 /* SCM_RIGHTS */;
	long result = tell(&s, 1, &rights, sent ? (rights.len + 7) & ~7ul : 0);
	if (result < 0) fail("handing out the listeners", "", result);
	if (held && CALL(read, report, code, 1, 0) != 1) leave(FAILED);
}

// readFilter reads the filter while its descriptor is still there.
static void readFilter(void)
{
	ulong n = 0;
	long result = 1;
	while (result > 0 && n < sizeof code) {
		result = CALL(read, filter, code + n, sizeof code - n, 0);
		if (result < 0) fail("reading the filter", "", result);
		n += result;
	}
	instructions = n / 8;
}

// closeOthers leaves stdin, stdout, stderr and, until execve, the report socket as descriptor 3.
static void closeOthers(void)
{
	int from = 3;
	long result = 0;
	if (report > 3) result = CALL(dup3, report, 3, 02000000 /* O_CLOEXEC */, 0);
	if (report == 3) result = CALL(fcntl, 3, 2 /* F_SETFD */, 1 /* FD_CLOEXEC */, 0);
	if (report) report = 3, from = 4;
	if (result >= 0) result = CALL(close_range, from, ~0u, 0, 0);
	if (result < 0) fail("closing descriptors", "", result);
}

static void installFilter(void)
{
	struct program p = { instructions, code };
	long result = CALL(prctl, 22 /* PR_SET_SECCOMP */, 2 /* SECCOMP_MODE_FILTER */, &p, 0);
	if (result < 0) fail("installing the filter", "", result);
}

static void waitForEnd(void)
{
	if (report) CALL(close_range, report, report, 0, 0);
	for (;;) {
		long n = CALL(read, 0, code, sizeof code, 0);
		if (n == 0 || (n < 0 && n != -4 /* EINTR */)) leave(0);
	}
}

// options reads the options and returns what comes after them: "--" and the program, or "-w".
static char **options(char **args)
{
	for (; *args; args += 2) {
		char *option = *args, *value = args[1];
		if (option[0] != '-') break;
		if (option[1] == '-' || option[1] == 'w') return args;
		if (!value) break;
		switch (option[1]) {
		case 'i': stayFirst(only(value)); break;
		case 's': report = only(value); break;
		case 'l': openListener(value); break;
		case 'r': setLimit(value); break;
		case 'p': ruleset = only(value); break;
		case 'f': filter = only(value); break;
		case 'd': enterFolder(value); break;
		case 'm': checkMount(value); break;
		case 'g': held = only(value); break;
		case 'n': enterNamespace(value); break;
		case 'o': changeMount(value); break;
		default: fail("bad option ", option, -22);
		}
	}
	fail("no program given", "", -22);
}

__attribute__((noreturn, used)) void begin(long *stack)
{
	char **argv = (char **)(stack + 1), **env = argv + stack[0] + 1;
	if (stack[0] < 2) leave(FAILED);
	argv = options(argv + 1);
	long result = CALL(prctl, 38 /* PR_SET_NO_NEW_PRIVS */, 1, 0, 0);
	if (result < 0) fail("giving up privileges", "", result);
	if (ruleset) {
		result = CALL(landlock_restrict_self, ruleset, 0, 0, 0);
		if (result < 0) fail("applying the Landlock ruleset", "", result);
	}
	if (report || listeners) handOut();
	if (filter) readFilter();
	closeOthers();
	if (filter) installFilter();
	if (argv[0][1] == 'w') waitForEnd();
	if (!argv[1]) fail("no program given", "", -22);
	result = CALL(execve, argv[1], argv + 1, env, 0);
	fail("running ", argv[1], result);
}
