/* Directories and files. See before.h. */
#include "before.h"

#ifdef WITH_before_directory
static char first_directory[4096];
CONSTRUCT(ask_directory)
{
    UNUSED;
    if (!getcwd(first_directory, sizeof first_directory))
        *first_directory = 0;
}
TELL(before_directory)
{
    say("%s", first_directory);
}
#endif

#ifdef WITH_before_directory_by_call
static char called_directory[4096];
CONSTRUCT(call_directory)
{
    UNUSED;
    RAW(SYS_getcwd, called_directory, sizeof called_directory);
}
TELL(before_directory_by_call)
{
    say("%s", called_directory);
}
#endif

#ifdef WITH_before_directory_by_link
static char linked_directory[4096];
CONSTRUCT(link_directory)
{
    UNUSED;
    if (readlink("/proc/self/cwd", linked_directory, sizeof linked_directory - 1) < 0)
        *linked_directory = 0;
}
TELL(before_directory_by_link)
{
    say("%s", linked_directory);
}
#endif

#ifdef WITH_before_directory_by_name
static char *full_name;
CONSTRUCT(name_directory)
{
    UNUSED;
    full_name = realpath(".", NULL);
}
TELL(before_directory_by_name)
{
    say("%s", full_name ? full_name : "(none)");
}
#endif

#ifdef WITH_before_directory_change
static int changed_directory;
CONSTRUCT(change_directory)
{
    UNUSED;
    changed_directory = chdir("/sys");
}
TELL(before_directory_change)
{
    char now[256] = "";
    say("%d %s", changed_directory, getcwd(now, sizeof now) ? now : "");
}
#endif

#ifdef WITH_before_directory_held
static int held_directory;
CONSTRUCT(hold_directory)
{
    UNUSED;
    held_directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
TELL(before_directory_held)
{
    struct stat held, now;
    say("same %d", fstat(held_directory, &held) == 0 && stat(".", &now) == 0 && held.st_ino == now.st_ino);
}
#endif

#ifdef WITH_before_file
static char first_file[64];
CONSTRUCT(read_config)
{
    UNUSED;
    slurp("config", first_file, sizeof first_file);
}
TELL(before_file)
{
    say("'%s'", first_file);
}
#endif

#ifdef WITH_before_file_by_call
static char called_file[64];
CONSTRUCT(call_config)
{
    UNUSED;
    long fd = RAW(SYS_openat, AT_FDCWD, "config", O_RDONLY);
    if (fd >= 0) {
        RAW(SYS_read, fd, called_file, sizeof called_file - 1);
        RAW(SYS_close, fd);
    }
}
TELL(before_file_by_call)
{
    say("'%s'", called_file);
}
#endif

#ifdef WITH_before_file_stream
static char streamed_file[64];
CONSTRUCT(stream_config)
{
    UNUSED;
    FILE *stream = fopen("config", "r");
    if (!stream)
        return;
    if (!fgets(streamed_file, sizeof streamed_file, stream))
        *streamed_file = 0;
    fclose(stream);
}
TELL(before_file_stream)
{
    say("'%s'", streamed_file);
}
#endif

#ifdef WITH_before_file_above
static int above_there = -1;
CONSTRUCT(look_above)
{
    UNUSED;
    above_there = access("../shared", F_OK);
}
TELL(before_file_above)
{
    say("%d", above_there);
}
#endif

#ifdef WITH_before_file_there
static int file_there = -1;
CONSTRUCT(look_for_config)
{
    UNUSED;
    file_there = access("config", R_OK);
}
TELL(before_file_there)
{
    say("%d", file_there);
}
#endif

#ifdef WITH_before_file_size
static long file_size = -1;
CONSTRUCT(measure_config)
{
    UNUSED;
    struct stat now;
    if (stat("config", &now) == 0)
        file_size = now.st_size;
}
TELL(before_file_size)
{
    say("%ld", file_size);
}
#endif

#ifdef WITH_before_file_mapped
static char mapped_file[8];
CONSTRUCT(map_config)
{
    UNUSED;
    struct stat now = {0};
    int fd = open("config", O_RDONLY);
    if (fd < 0 || fstat(fd, &now) != 0 || now.st_size == 0)
        return;
    const char *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at != MAP_FAILED)
        memcpy(mapped_file, at, 5);
    close(fd);
}
TELL(before_file_mapped)
{
    say("'%s'", mapped_file);
}
#endif

#ifdef WITH_before_file_written
CONSTRUCT(write_file)
{
    UNUSED;
    spill("by-constructor", "written\n");
}
TELL(before_file_written)
{
    say("there %d", access("by-constructor", F_OK));
}
#endif

#ifdef WITH_before_file_appended
CONSTRUCT(append_file)
{
    UNUSED;
    int fd = open("../shared/started", O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (fd >= 0 && write(fd, "started\n", 8) == 8)
        close(fd);
}
TELL(before_file_appended)
{
    char text[1000];
    say("%d", slurp("../shared/started", text, sizeof text));
}
#endif

#ifdef WITH_before_file_removed
CONSTRUCT(remove_config)
{
    UNUSED;
    unlink("config");
}
TELL(before_file_removed)
{
    say("there %d", access("config", F_OK));
}
#endif

#ifdef WITH_before_directory_made
static int made_directory;
CONSTRUCT(make_directory)
{
    UNUSED;
    made_directory = mkdir("by-constructor.d", 0755);
}
TELL(before_directory_made)
{
    say("%d", made_directory);
}
#endif
