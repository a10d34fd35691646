/* Strings and messages. The compiler may ask for the mem functions by itself. */
#include "client.h"
#include "system.h"

void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
    char *out = to;
    const char *in = from;
    while (length--)
        *out++ = *in++;
    return to;
}

void *memset(void *to, int value, size_t length)
{
    char *out = to;
    while (length--)
        *out++ = (char)value;
    return to;
}

size_t text_length(const char *text)
{
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

int text_begins(const char *text, const char *with)
{
    while (*with)
        if (*text++ != *with++)
            return 0;
    return 1;
}

int text_equal(const char *a, const char *b)
{
    return text_begins(a, b) && a[text_length(b)] == 0;
}

const char *text_last_part(const char *path)
{
    const char *last = path;
    for (; *path; path++)
        if (*path == '/')
            last = path + 1;
    return last;
}

const char *text_variable(char **envp, const char *name)
{
    size_t length = text_length(name);
    for (; *envp; envp++)
        if (text_begins(*envp, name) && (*envp)[length] == '=')
            return *envp + length + 1;
    return NULL;
}

/* Appends and keeps the text ended; NULL, and so in all later calls, if there is no room. */
char *text_append(char *at, char *end, const char *text)
{
    size_t length = text_length(text);
    if (!at || length >= (size_t)(end - at))
        return NULL;
    memcpy(at, text, length + 1);
    return at + length;
}

char *text_append_number(char *at, char *end, unsigned long number)
{
    char digits[24];
    char *first = digits + sizeof digits - 1;
    *first = 0;
    do
        *--first = (char)('0' + number % 10);
    while (number /= 10);
    return text_append(at, end, first);
}

/* One line to standard error, in one write. */
void say(const char *const *parts)
{
    char line[2 * PATH_ROOM];
    char *at = text_append(line, line + sizeof line - 1, "hotstart-exec: ");
    for (; *parts && at; parts++)
        at = text_append(at, line + sizeof line - 1, *parts);
    if (at)
        at = text_append(at, line + sizeof line, "\n");
    if (at)
        sys(__NR_write, 2, line, at - line);
}

const char *text_error(long error)
{
    switch (-error) {
    case 2: return "No such file or directory";
    case 7: return "Argument list too long";
    case 8: return "Exec format error";
    case 12: return "Cannot allocate memory";
    case 13: return "Permission denied";
    case 20: return "Not a directory";
    case 26: return "Text file busy";
    case 40: return "Too many levels of symbolic links";
    default: return "the system refuses it";
    }
}
