#pragma once

/// Puts a function into the table that JavaScript sees, under its own name.
#define OCDL_EXPORTED(name) extern "C" __attribute__((export_name(#name)))
