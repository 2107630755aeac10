/* A disk that fails and a clock that jumps, for the process it is preloaded into.

   FAULT_WRITES=N:ERRNO:TIMES  from the Nth write, fsync or ftruncate of a regular file on, TIMES of them fail (0: all)
   FAULT_CLOCK=N:SECONDS       from the Nth look at the wall clock on, it is SECONDS ahead (or behind, if negative), and N more
                               looks later it is right again, and so on; the monotonic clock is left alone */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_long writes, looks;

static int fails(int file)
{
	static long first = -1, number, times;
	struct stat status;
	if (first == -1) {
		const char *given = getenv("FAULT_WRITES");
		first = 0;
		if (given)
			sscanf(given, "%ld:%ld:%ld", &first, &number, &times);
	}
	if (first <= 0 || fstat(file, &status) || !S_ISREG(status.st_mode))
		return 0;
	long now = atomic_fetch_add(&writes, 1) + 1;
	if (now < first || (times && now >= first + times))
		return 0;
	errno = (int)number;
	return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *content, size_t size) { return fails(file) ? -1 : REAL(write)(file, content, size); }
ssize_t pwrite(int file, const void *content, size_t size, off_t at) { return fails(file) ? -1 : REAL(pwrite)(file, content, size, at); }
int fsync(int file) { return fails(file) ? -1 : REAL(fsync)(file); }
int fdatasync(int file) { return fails(file) ? -1 : REAL(fdatasync)(file); }
int ftruncate(int file, off_t size) { return fails(file) ? -1 : REAL(ftruncate)(file, size); }

static long ahead(void)
{
	static long every = -1, seconds;
	if (every == -1) {
		const char *given = getenv("FAULT_CLOCK");
		every = 0;
		if (given)
			sscanf(given, "%ld:%ld", &every, &seconds);
	}
	if (every <= 0)
		return 0;
	return (atomic_fetch_add(&looks, 1) / every) % 2 ? seconds : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int code = REAL(clock_gettime)(clock, now);
	if (!code && clock == CLOCK_REALTIME)
		now->tv_sec += ahead();
	return code;
}

time_t time(time_t *place)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (place)
		*place = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *now, void *zone)
{
	int code = REAL(gettimeofday)(now, zone);
	if (!code)
		now->tv_sec += ahead();
	return code;
}
