/* Streams: buffers, orientation, positions, and what of them is written at the end. */
#include "act.h"
#include <ftw.h>
#include <wchar.h>

#undef FAMILY
#define FAMILY "stdio"

MIXED(stdio_print)
{
    printf("printed %d\n", 5);
    fprintf(stderr, "to the error stream\n");
}

DISTURB(stdio_unflushed)
{
    say("pending before %zu", stdout->_IO_write_ptr - stdout->_IO_write_base);
    fputs("no end of line;", stdout);
}

DISTURB(stdio_unbuffered)
{
    say_result("setvbuf", setvbuf(stdout, NULL, _IONBF, 0));
}

DISTURB(stdio_line_buffered)
{
    static char buffer[100];
    say_result("setvbuf", setvbuf(stdout, buffer, _IOLBF, sizeof buffer));
}

DISTURB(stdio_own_buffer)
{
    static char buffer[70];
    setbuffer(stdout, buffer, sizeof buffer);
    printf("by a small buffer, which is flushed now and then: %s\n", "0123456789012345678901234567890123456789");
}

DISTURB(stdio_wide)
{
    say("was %d", fwide(stdout, 0));
    say("wide %d", fwide(stdout, 1) > 0);
    fputws(L"wide\n", stdout);
}

OBSERVE(stdio_state)
{
    FILE *streams[] = {stdin, stdout, stderr};
    for (int i = 0; i < 3; i++) {
        FILE *stream = streams[i];
        say("%d wide %d error %d end %d number %d", i, fwide(stream, 0), ferror(stream) != 0, feof(stream) != 0,
            fileno(stream));
        say("%d buffer %d read %zu write %zu", i, stream->_IO_buf_base != NULL,
            (size_t)(stream->_IO_read_end - stream->_IO_read_ptr), (size_t)(stream->_IO_write_ptr - stream->_IO_write_base));
    }
}

MIXED(stdin_char)
{
    say("%d", getchar());
}

MIXED(stdin_line)
{
    char line[64] = "";
    say("line %s", fgets(line, sizeof line, stdin) ? line : "(none)");
}

DISTURB(stdin_unget)
{
    say("%d", ungetc('U', stdin));
}

MIXED(stdin_rest)
{
    int count = 0;
    while (getchar() != EOF)
        count++;
    say("rest %d end %d", count, feof(stdin) != 0);
}

MIXED(stdin_scan)
{
    int number = -1;
    int got = scanf("%d", &number);
    say("scanned %d %d", got, number);
}

DISTURB(stdout_reopen)
{
    say("reopened %d", freopen("reopened", "w", stdout) != NULL);
    printf("in a file\n");
}

DISTURB(stdout_close)
{
    say_result("fclose", fclose(stdout));
}

DISTURB(stdin_close)
{
    say_result("fclose", fclose(stdin));
}

DISTURB(stdout_error)
{
    FILE *full = fopen("/dev/full", "w");
    fputs("x", full);
    SAY2("flush %ld error %ld", fflush(full), ferror(full) != 0);
}

DISTURB(stream_left_open)
{
    FILE *stream = fopen("stream", "w");
    say("written %d", fputs("flushed by exit only\n", stream) >= 0);
}

static ssize_t take(void *cookie, const char *text, size_t size)
{
    *(size_t *)cookie += size;
    (void)text;
    return (ssize_t)size;
}

MIXED(stream_cookie)
{
    static size_t total;
    FILE *stream = fopencookie(&total, "w", (cookie_io_functions_t){.write = take});
    fprintf(stream, "counted");
    fclose(stream);
    say("total %zu", total);
}

MIXED(stream_memory)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    fprintf(stream, "%s", "in memory");
    fclose(stream);
    say("%zu %s", size, text);
    free(text);
}

DISTURB(stdout_replaced)
{
    static FILE *other;
    other = fopen("replaced", "w");
    say("was own %d", stdout != other);
    stdout = other;
    printf("into the replacement\n");
}

static int visited;

static int visit(const char *path, const struct stat *now, int kind, struct FTW *at)
{
    (void)path, (void)now, (void)kind, (void)at;
    visited++;
    return 0;
}

MIXED(tree_walk)
{
    visited = 0;
    int failed = nftw("../shared", visit, 5, FTW_PHYS);
    say("walk %d some %d", failed, visited > 0);
}
