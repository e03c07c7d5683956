#include "tests/unit/fault_vfs.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

static sqlite3_vfs *base;
static sqlite3_vfs shim;
static long fault_at, counted;
static int fault_code;
static bool fault_stays;

/* This layer's file, followed by the file of the underlying file system. */
struct file {
	sqlite3_file head;
	sqlite3_io_methods methods;
};

static sqlite3_file *below(sqlite3_file *file)
{
	return (sqlite3_file *)(void *)((struct file *)(void *)file + 1);
}

void fault_vfs_set(long at, int code, bool stays)
{
	fault_at = at;
	fault_code = code;
	fault_stays = stays;
	counted = 0;
}

long fault_vfs_count(void)
{
	return counted;
}

static bool fails(void)
{
	counted++;
	return fault_at > 0 && (counted == fault_at || (fault_stays && counted > fault_at));
}

static int shim_close(sqlite3_file *file)
{
	return below(file)->pMethods->xClose(below(file));
}

static int shim_read(sqlite3_file *file, void *to, int bytes, sqlite3_int64 offset)
{
	return below(file)->pMethods->xRead(below(file), to, bytes, offset);
}

static int shim_write(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 offset)
{
	if (!fails())
		return below(file)->pMethods->xWrite(below(file), from, bytes, offset);
	if (fault_code == SQLITE_FULL)
		below(file)->pMethods->xWrite(below(file), from, bytes / 2, offset);
	return fault_code;
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	return fails() ? fault_code : below(file)->pMethods->xTruncate(below(file), size);
}

static int shim_sync(sqlite3_file *file, int flags)
{
	(void)file, (void)flags;
	return fails() ? fault_code : SQLITE_OK;
}

static int shim_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return below(file)->pMethods->xFileSize(below(file), size);
}

static int shim_lock(sqlite3_file *file, int level)
{
	return below(file)->pMethods->xLock(below(file), level);
}

static int shim_unlock(sqlite3_file *file, int level)
{
	return below(file)->pMethods->xUnlock(below(file), level);
}

static int shim_reserved(sqlite3_file *file, int *out)
{
	return below(file)->pMethods->xCheckReservedLock(below(file), out);
}

static int shim_control(sqlite3_file *file, int what, void *argument)
{
	return below(file)->pMethods->xFileControl(below(file), what, argument);
}

static int shim_sector(sqlite3_file *file)
{
	return below(file)->pMethods->xSectorSize(below(file));
}

static int shim_device(sqlite3_file *file)
{
	return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

static int shim_shm_map(sqlite3_file *file, int page, int bytes, int extend, void volatile **out)
{
	return below(file)->pMethods->xShmMap(below(file), page, bytes, extend, out);
}

static int shim_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
	return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}

static void shim_shm_barrier(sqlite3_file *file)
{
	below(file)->pMethods->xShmBarrier(below(file));
}

static int shim_shm_unmap(sqlite3_file *file, int remove)
{
	return below(file)->pMethods->xShmUnmap(below(file), remove);
}

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	struct file *own = (struct file *)(void *)file;
	(void)vfs;
	memset(own, 0, sizeof *own);
	if (flags & SQLITE_OPEN_CREATE && fails())
		return SQLITE_CANTOPEN;
	int code = base->xOpen(base, name, below(file), flags, out);
	if (!below(file)->pMethods)
		return code;
	own->methods = (sqlite3_io_methods){
		.iVersion = 2,
		.xClose = shim_close,
		.xRead = shim_read,
		.xWrite = shim_write,
		.xTruncate = shim_truncate,
		.xSync = shim_sync,
		.xFileSize = shim_size,
		.xLock = shim_lock,
		.xUnlock = shim_unlock,
		.xCheckReservedLock = shim_reserved,
		.xFileControl = shim_control,
		.xSectorSize = shim_sector,
		.xDeviceCharacteristics = shim_device,
		.xShmMap = shim_shm_map,
		.xShmLock = shim_shm_lock,
		.xShmBarrier = shim_shm_barrier,
		.xShmUnmap = shim_shm_unmap,
	};
	own->head.pMethods = &own->methods;
	return code;
}

static int shim_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs, (void)sync;
	return fails() ? SQLITE_IOERR_DELETE : base->xDelete(base, name, 0);
}

void fault_vfs_install(void)
{
	base = sqlite3_vfs_find(NULL);
	shim = *base;
	shim.zName = "fault";
	shim.szOsFile = base->szOsFile + (int)sizeof(struct file);
	shim.xOpen = shim_open;
	shim.xDelete = shim_delete;
	if (sqlite3_vfs_register(&shim, 1) != SQLITE_OK)
		abort();
}
