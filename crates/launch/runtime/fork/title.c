/* The command line and environment of a process as /proc shows them. The kernel keeps their addresses, and PR_SET_MM_MAP sets all of
 * them at once without a capability. Setting them one by one needs one.
 */
#define _GNU_SOURCE
#include <linux/prctl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime.h"

/* As the kernel has it, from hs_title_open on; hs_title_set changes the places of arguments and environment only. */
static struct prctl_mm_map map;

/* While it waits for a request, a process is found neither by the tool's name nor by its command line, as pgrep would. */
static char waits[] = "hotstart-idle";
/* The tool's. */
static char name[16];

/* Field numbers of /proc/self/stat, see proc(5). */
enum { START_CODE = 26, END_CODE = 27, START_STACK = 28, START_DATA = 45, END_DATA = 46, START_BRK = 47,
       ARG_START = 48, ARG_END = 49, ENV_START = 50, ENV_END = 51 };

static void keep(int field, uintptr_t value)
{
    switch (field) {
    case START_CODE: map.start_code = value; break;
    case END_CODE: map.end_code = value; break;
    case START_STACK: map.start_stack = value; break;
    case START_DATA: map.start_data = value; break;
    case END_DATA: map.end_data = value; break;
    case START_BRK: map.start_brk = value; break;
    case ARG_START: map.arg_start = value; break;
    case ARG_END: map.arg_end = value; break;
    case ENV_START: map.env_start = value; break;
    case ENV_END: map.env_end = value; break;
    }
}

static int apply(void)
{
    /* The kernel's, which in a worker is above libc's. */
    map.brk = (uintptr_t)syscall(SYS_brk, 0L);
    map.auxv = NULL;
    map.auxv_size = 0;
    map.exe_fd = (uint32_t)-1;
    return prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

/* Reads the addresses, and tries whether the kernel accepts them. */
int hs_title_open(void)
{
    char text[2048];
    if (hs_read_whole("/proc/self/stat", text, sizeof text) < 0)
        return -1;
    const char *at = strrchr(text, ')');
    if (!at)
        return -1;
    at += 2; /* field 3 */
    for (int field = 3; field <= ENV_END && *at; field++) {
        const char *value = at;
        keep(field, hs_parse(&value, 10));
        while (*at && *at != ' ')
            at++;
        while (*at == ' ')
            at++;
    }
    return map.env_end ? apply() : -1;
}

/* The strings that the kernel laid on the stack at exec. */
void hs_title_stack(uintptr_t *low, uintptr_t *high)
{
    *low = map.arg_start;
    *high = map.env_end;
}

int hs_title_set(char *args, char *env, char *end)
{
    map.arg_start = (uintptr_t)args;
    map.arg_end = map.env_start = (uintptr_t)env;
    map.env_end = (uintptr_t)end;
    return apply();
}

void hs_title_hide_name(void)
{
#ifndef HS_WITHOUT_TITLE
    prctl(PR_SET_NAME, waits);
#endif
}

/* Between two requests. The kernel shows these strings: they need not be told to it anew. */
void hs_title_hide_strings(char *strings, char *end)
{
#ifdef HS_WITHOUT_TITLE
    return;
#endif
    memset(strings, 0, (size_t)(end - strings));
    if ((size_t)(end - strings) > sizeof waits)
        memcpy(strings, waits, sizeof waits);
}

/* A zygote that waits for its first request: its strings are those of its exec until then. */
void hs_title_hide_zygote(void)
{
#ifndef HS_WITHOUT_TITLE
    prctl(PR_GET_NAME, name);
    hs_title_hide_name();
    hs_title_set(waits, waits + sizeof waits, waits + sizeof waits);
#endif
}

/* In a fork. */
void hs_title_show(void)
{
#ifndef HS_WITHOUT_TITLE
    prctl(PR_SET_NAME, name);
#endif
}
