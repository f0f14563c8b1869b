#pragma once

/// How often this program has called operator new. (Eigen allocates by itself: set_is_malloc_allowed watches
/// it.)
long allocation_count();
