/* What is compared, and what is refused, where the interpreter has halted. */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "python.h"

#if HS_RESETS



enum { PY_EQUAL = 2 };
/* Tools that sys.monitoring has room for. */
enum { MONITORS = 6 };

/* As the interpreter has set it. */
static char locale[256];

static void mix(uint64_t *hash, const void *from, size_t size)
{
    const unsigned char *bytes = from;
    for (size_t i = 0; i < size; i++)
        *hash = (*hash ^ bytes[i]) * 0x100000001b3u;
}

static void mix_text(uint64_t *hash, const char *text)
{
    mix(hash, text ? text : "?", strlen(text ? text : "?") + 1);
}

static void mix_attribute(uint64_t *hash, hs_py *of, const char *name)
{
    hs_py *value = hs_py_api.PyObject_GetAttrString(of, name);
    mix_text(hash, value ? hs_py_api.PyUnicode_AsUTF8(value) : NULL);
    if (value)
        hs_py_api.Py_DecRef(value);
}

/* The file and the line of the innermost Python code, and this text. For people. */
const char *hs_python_line(const char *text)
{
    static char line[HS_PYTHON_TEXT];
    hs_py *error[3];
    hs_py_api.PyErr_Fetch(&error[0], &error[1], &error[2]);
    hs_py *frame = hs_py_api.PyEval_GetFrame();
    hs_py *code = frame ? hs_py_api.PyFrame_GetCode(frame) : NULL;
    hs_py *file = code ? hs_py_api.PyObject_GetAttrString(code, "co_filename") : NULL;
    const char *name = file ? hs_py_api.PyUnicode_AsUTF8(file) : NULL;
    if (name)
        snprintf(line, sizeof line, "%s:%d: %s", name, hs_py_api.PyFrame_GetLineNumber(frame), text);
    else
        snprintf(line, sizeof line, "%s", text);
    if (file)
        hs_py_api.Py_DecRef(file);
    if (code)
        hs_py_api.Py_DecRef(code);
    hs_py_api.PyErr_Restore(error[0], error[1], error[2]);
    return line;
}

/* A number for the place: what was touched, by which line of which function, and the modules that were imported, in their order. */
uint64_t hs_python_place(const char *what)
{
    uint64_t hash = 0xcbf29ce484222325u;
    mix_text(&hash, what);
    hs_py *frame = hs_py_api.PyEval_GetFrame();
    if (frame)
        hs_py_api.Py_IncRef(frame);
    while (frame) {
        hs_py *code = hs_py_api.PyFrame_GetCode(frame);
        const int line = hs_py_api.PyFrame_GetLineNumber(frame);
        mix_attribute(&hash, code, "co_filename");
        mix_attribute(&hash, code, "co_name");
        mix(&hash, &line, sizeof line);
        hs_py *back = hs_py_api.PyFrame_GetBack(frame);
        hs_py_api.Py_DecRef(code);
        hs_py_api.Py_DecRef(frame);
        frame = back;
    }
    hs_py *modules = hs_py_api.PyImport_GetModuleDict(), *name, *module;
    for (ssize_t at = 0; hs_py_api.PyDict_Next(modules, &at, &name, &module);)
        mix_text(&hash, name->type == hs_py_api.text ? hs_py_api.PyUnicode_AsUTF8(name) : NULL);
    hs_py_api.PyErr_Clear();
    return hash | 1;
}

/* Whether the generator of `random` is as its import has left it. An observer gives each generator the same seed. A new one has none yet
 * with some interpreters (3.9.18). */
static int is_seeded_by_import(hs_py *generator)
{
    hs_py *type = hs_py_request.random;
    hs_py *other = hs_py_api.PyObject_CallFunction(type, NULL);
    const int is_seeded = other && hs_py_api.PyObject_CallMethod(type, "seed", "O", other);
    hs_py *states[2] = {hs_py_api.PyObject_CallMethod(type, "getstate", "O", generator),
                        is_seeded ? hs_py_api.PyObject_CallMethod(type, "getstate", "O", other) : NULL};
    const int is_same = states[0] && states[1] && hs_py_api.PyObject_RichCompareBool(states[0], states[1], PY_EQUAL) == 1;
    hs_py_api.PyErr_Clear();
    return is_same;
}

void hs_python_note_locale(void)
{
    const char *name = setlocale(LC_CTYPE, NULL);
    snprintf(locale, sizeof locale, "%s", name ? name : "");
}

/* Whether the environment is the one that the process was given, but for the variable that the interpreter sets itself. */
static int has_own_environment(const struct hs_start *start)
{
    extern char **environ;
    const char *own = "LC_CTYPE=";
    char **given = start->envp, **now = environ;
    for (; *given && *now; given++, now++)
        if (strcmp(*given, *now) != 0 && (strncmp(*given, own, strlen(own)) != 0 || strncmp(*now, own, strlen(own)) != 0))
            return 0;
    if (*now && strncmp(*now, own, strlen(own)) == 0)
        now++;
    return !*given && !*now;
}

/* Whether somebody is told of what Python code runs: of the runtime's as well. */
static int is_monitored(void)
{
    hs_py *monitoring = hs_py_api.PySys_GetObject("monitoring");
    for (int tool = 0; monitoring && tool < MONITORS; tool++) {
        hs_py *name = hs_py_api.PyObject_CallMethod(monitoring, "get_tool", "i", tool);
        if (name != hs_py_api.none)
            return 1;
        hs_py_api.Py_DecRef(name);
    }
    return 0;
}

/* Whether memory is counted (tracemalloc). It may be so without the module, by an option. */
static int is_traced(void)
{
    hs_py *tracing = hs_python_attribute("_tracemalloc", "is_tracing"), *options = hs_py_api.PySys_GetObject("_xoptions");
    if (options && options->type == hs_py_api.dict && hs_py_api.PyDict_GetItemString(options, "tracemalloc"))
        return 1;
    hs_py *answer = tracing ? hs_py_api.PyObject_CallFunction(tracing, NULL) : NULL;
    const int is_it = tracing && (!answer || hs_py_api.PyLong_AsLong(answer) != 0);
    if (answer)
        hs_py_api.Py_DecRef(answer);
    return is_it;
}

/* Whether os.environ has what the interpreter has made of the environment: code may write to the dictionary by no slot of its type. */
static int has_own_dictionary(void)
{
    extern char **environ;
    hs_py *name, *value;
    char **given = environ;
    for (ssize_t at = 0; hs_py_api.PyDict_Next(hs_py_request.environment, &at, &name, &value); given++) {
        if (name->type != hs_py_api.bytes || value->type != hs_py_api.bytes)
            return 0;
        const struct hs_py_bytes *texts[] = {(struct hs_py_bytes *)name, (struct hs_py_bytes *)value};
        const size_t length = (size_t)texts[0]->size;
        while (*given && (strncmp(*given, texts[0]->text, length) != 0 || (*given)[length] != '='))
            given++;
        if (!*given || strcmp(*given + length + 1, texts[1]->text) != 0)
            return 0;
    }
    return 1;
}

/* NULL, or why the values that each fork renews cannot be. */
static const char *refuses_values(void)
{
    hs_py *generator = hs_py_request.generator;
    if (hs_python_draws() != (generator && hs_py_request.random))
        return "the module random is not imported completely";
    if (hs_python_is_observed && generator && !is_seeded_by_import(generator))
        return "random numbers were drawn, or seeded";
    return hs_python_lost();
}

/* NULL, or why no fork of this process would be as a fresh one. */
const char *hs_python_refuses(const struct hs_start *start)
{
    const char *name = setlocale(LC_CTYPE, NULL);
    if (!name || strcmp(name, locale) != 0)
        return "the locale by which arguments are decoded was changed";
    if (!has_own_environment(start))
        return "the environment was changed";
    if (is_monitored())
        return "sys.monitoring is in use";
    if (is_traced())
        return "tracemalloc counts the runtime's memory, too";
    if (!hs_py_api.PyEval_GetFrame())
        return "it ends before it looks at its request";
    if (!has_own_dictionary())
        return "os.environ was changed";
    const char *why = refuses_values();
    if (!why)
        why = hs_python_find_configuration(start);
    if (why)
        return why;
    for (int i = 1; i < 3; i++) {
        hs_py *done = hs_py_api.PyObject_CallMethod(hs_py_request.streams[i], "flush", NULL);
        if (!done)
            return "a standard stream fails";
        hs_py_api.Py_DecRef(done);
    }
    return NULL;
}

#endif
