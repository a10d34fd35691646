/* Holds locks when it first looks at its arguments: libc keeps the thread's number in them. Its status
 * tells whether they are still its own, and the number of arguments. With "wait" it reads its input to the end before. */
#define _GNU_SOURCE
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;

int main(int argc, char **argv)
{
    char byte;
    clockid_t before, after;
    const int has_locks = strcmp(HELD, "locks") == 0, has_locale = strcmp(HELD, "locale") == 0;
    pthread_getcpuclockid(pthread_self(), &before);
    /* It opens files, and so is where a run is deferred to, behind a lock of libc's own. */
    if (has_locale)
        setlocale(LC_ALL, "");
    if (has_locks) {
        pthread_mutex_lock(&checked);
        pthread_mutex_lock(&recursive);
        pthread_rwlock_wrlock(&shared);
    }
    const int waits = argc > 1 && strcmp(argv[1], "wait") == 0;
    while (waits && read(0, &byte, 1) > 0)
        ;
    pthread_getcpuclockid(pthread_self(), &after);
    if (before != after)
        return 3;
    if (has_locks && pthread_rwlock_trywrlock(&shared) != EBUSY)
        return 4;
    if (has_locks && (pthread_mutex_lock(&recursive) != 0 || pthread_mutex_unlock(&recursive) != 0))
        return 5;
    if (has_locks && pthread_mutex_unlock(&checked) != 0)
        return 6;
    if (has_locale && !setlocale(LC_ALL, "C"))
        return 7;
    return 10 + argc;
}
