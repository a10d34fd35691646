/* Gives the interpreter's configuration the request's arguments: another interpreter of the same process has its own from there. The same
 * for the copy that Py_GetArgcArgv tells.
 *
 * The interpreter has copied them into its lists before a script runs, and does not look at them again. There is no function that sets
 * them. So their places are known by version, and a process whose configuration does not have its arguments there does not become a
 * zygote.
 */
#define _GNU_SOURCE
#include <link.h>
#include <string.h>

#include "python.h"

#if HS_RESETS

struct texts {
    ssize_t length;
    wchar_t **items;
};

/* Where sys.argv and sys.orig_argv come from, in a build with a global interpreter lock on a 64-bit system. Version 3.9 has no second
 * list. */
static const struct {
    int minor;
    size_t arguments, original;
} places[] = {{9, 96, 0}, {10, 104, 88}, {11, 120, 104}, {12, 128, 112}, {13, 128, 112}, {14, 128, 112}};

static struct texts *arguments, *original;
/* What Py_GetArgcArgv tells: a variable of its library's, which has no name. */
static struct texts *whole;

/* Looks for it among the library's data. Returns how often it was found. */
static int find_whole(struct dl_phdr_info *info, size_t size __attribute__((unused)), void *wanted)
{
    const uintptr_t code = (uintptr_t)hs_py_api.Py_GetArgcArgv;
    int is_here = 0, found = 0;
    for (const ElfW(Phdr) *part = info->dlpi_phdr; part < info->dlpi_phdr + info->dlpi_phnum; part++)
        is_here |= part->p_type == PT_LOAD && code - info->dlpi_addr - part->p_vaddr < part->p_memsz;
    for (const ElfW(Phdr) *part = info->dlpi_phdr; is_here && part < info->dlpi_phdr + info->dlpi_phnum; part++) {
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
            continue;
        const uintptr_t word = sizeof(uintptr_t), from = (info->dlpi_addr + part->p_vaddr + word - 1) & -word;
        const uintptr_t to = info->dlpi_addr + part->p_vaddr + part->p_memsz;
        for (uintptr_t at = from; at + sizeof *whole <= to; at += word)
            if (memcmp((const void *)at, wanted, sizeof *whole) == 0) {
                whole = (struct texts *)at;
                found++;
            }
    }
    return found;
}

/* Whether a list has the last arguments of the process, and no fewer than these. */
static int has(const struct texts *list, const struct hs_start *start, ssize_t least)
{
    if (list->length < least || list->length > start->argc)
        return 0;
    for (ssize_t i = 0; i < list->length; i++) {
        wchar_t *wide = hs_py_api.Py_DecodeLocale(start->argv[start->argc - list->length + i], NULL);
        const int is_it = wide && wcscmp(wide, list->items[i]) == 0;
        hs_py_api.PyMem_RawFree(wide);
        if (!is_it)
            return 0;
    }
    return 1;
}

/* Whether this process has one interpreter. */
int hs_python_is_alone(void)
{
    void *first = hs_py_api.PyInterpreterState_Head();
    return first && !hs_py_api.PyInterpreterState_Next(first);
}

/* NULL, or why the configuration cannot be given a request. */
const char *hs_python_find_configuration(const struct hs_start *start)
{
    char *config = hs_py_api._Py_GetConfig();
    struct texts told;
    int count;
    hs_py_api.Py_GetArgcArgv(&count, &told.items);
    told.length = count;
    if (!hs_python_is_alone())
        return "there is another interpreter";
    if (!has(&told, start, start->argc) || dl_iterate_phdr(find_whole, &told) != 1)
        return "the arguments that Py_GetArgcArgv tells";
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i].minor != hs_py_api.minor)
            continue;
        arguments = (struct texts *)(void *)(config + places[i].arguments);
        original = places[i].original ? (struct texts *)(void *)(config + places[i].original) : NULL;
        if (has(arguments, start, 1) && (!original || has(original, start, start->argc)))
            return NULL;
    }
    return "the interpreter's configuration";
}

static wchar_t **decode(const char *text, uint32_t count)
{
    wchar_t **items = hs_py_api.PyMem_RawMalloc(count * sizeof *items);
    if (!items)
        hs_python_give_up();
    for (uint32_t i = 0; i < count; i++, text += strlen(text) + 1)
        if (!(items[i] = hs_py_api.Py_DecodeLocale(text, NULL)))
            hs_python_give_up();
    return items;
}

static void fill(struct texts *list, const char *text, uint32_t count)
{
    wchar_t **items = decode(text, count);
    for (ssize_t i = 0; i < list->length; i++)
        hs_py_api.PyMem_RawFree(list->items[i]);
    hs_py_api.PyMem_RawFree(list->items);
    *list = (struct texts){(ssize_t)count, items};
}

/* `before` of the arguments precede the script. */
void hs_python_fill_configuration(const char *texts, uint32_t count, uint32_t before)
{
    const char *script = texts;
    for (uint32_t i = 0; i < before; i++)
        script += strlen(script) + 1;
    fill(arguments, script, count - before);
    if (original)
        fill(original, texts, count);
    /* The old ones are of another allocator, if the tool has set one. */
    *whole = (struct texts){(ssize_t)count, decode(texts, count)};
}

#endif
