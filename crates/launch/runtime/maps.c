/* The process's mappings, as /proc/self/maps lists them. The list is read into the runtime's own data: a buffer from the heap would itself
 * be a change to what is being looked at.
 */
#include <string.h>

#include "runtime.h"

/* The list that was read last. hs_maps_next ends each line of it by a NUL. */
static char text[256 * 1024];

/* The list, to be gone through with hs_maps_next; NULL if it cannot be read. */
const char *hs_maps_read(void)
{
    return hs_read_whole("/proc/self/maps", text, sizeof text) < 0 ? NULL : text;
}

static const char *skip_spaces(const char *at)
{
    while (*at == ' ')
        at++;
    return at;
}

/* Reads one line; the rest of the list, or NULL at its end. */
const char *hs_maps_next(const char *line, struct hs_mapping *out)
{
    if (!*line)
        return NULL;
    out->from = hs_parse(&line, 16);
    line++;
    out->to = hs_parse(&line, 16);
    line++;
    memcpy(out->access, line, sizeof out->access);
    /* Access, offset, device, inode; a nameless mapping has nothing behind them. */
    for (int field = 0; field < 4; field++) {
        while (*line != ' ' && *line != '\n')
            line++;
        line = skip_spaces(line);
    }
    out->path = line;
    while (*line != '\n')
        line++;
    *(char *)line = 0;
    return line + 1;
}
