/* SPDX-License-Identifier: Apache-2.0 */
/* What the headers of the C API share: versions, errors, text, files and tensors. ingot.h has the
 * conventions, and includes it. */
#ifndef INGOT_BASE_H
#define INGOT_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(INGOT_BUILDS_LIBRARY)
#define INGOT_API __declspec(dllexport)
#elif defined(_WIN32)
#define INGOT_API __declspec(dllimport)
#else
#define INGOT_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define INGOT_ABI_VERSION 2                 /* 2: ingot_tensor has a device and an offset */
INGOT_API uint32_t ingot_abi_version(void); /* of the library that is loaded */
INGOT_API const char* ingot_version(void);  /* product version, "0.1.0" */

/* ---- Errors ---- */
typedef enum ingot_error_kind {
  INGOT_USER_ERROR = 1,        /* a bad model, file, option or argument */
  INGOT_UNSUPPORTED_ERROR = 2, /* valid, but not supported by Ingot */
  INGOT_INTERNAL_ERROR = 3,    /* a bug in Ingot */
  INGOT_DEVICE_ERROR = 4       /* the system or a device failed */
} ingot_error_kind;
typedef struct ingot_status ingot_status;
INGOT_API ingot_error_kind ingot_status_kind(const ingot_status* status);
INGOT_API const char* ingot_status_code(const ingot_status* status);    /* stable: "INGOT-U012" */
INGOT_API const char* ingot_status_message(const ingot_status* status); /* what was wrong */
INGOT_API const char* ingot_status_node(const ingot_status* status);    /* "" if none */
INGOT_API const char* ingot_status_source(const ingot_status* status);  /* in the model, "" if unknown */
INGOT_API const char* ingot_status_advice(const ingot_status* status);  /* what to do, or "" */
INGOT_API const char* ingot_status_text(const ingot_status* status);    /* all of the above */
INGOT_API void ingot_status_free(ingot_status* status); /* NULL is allowed, as in all _free functions */
/* For front ends that detect errors themselves; `advice` may be NULL. If this fails, returns its own status.
 * */
INGOT_API ingot_status* ingot_status_create(ingot_error_kind kind, const char* code, const char* message,
                                            const char* advice);
INGOT_API const char* ingot_explain(const char* code); /* a page on "INGOT-N001" or "n001"; NULL if unknown */

/* Text that the library allocates and the caller frees. */
typedef struct ingot_text ingot_text;
INGOT_API const char* ingot_text_data(const ingot_text* text);
INGOT_API size_t ingot_text_size(const ingot_text* text);
INGOT_API void ingot_text_free(ingot_text* text);

/* ---- Files ---- */
/* A file that is written atomically, as engines are. It appears under its name when it is finished, and is on
 * the medium then: readers find the old file or the whole new one. Links are followed, the permissions of an
 * old file are kept; pipes and character devices are written directly. If freed before it is finished, it
 * leaves nothing behind. One thread at a time. */
typedef struct ingot_file ingot_file;
INGOT_API ingot_status* ingot_file_create(const char* path, ingot_file** file);
INGOT_API ingot_status* ingot_file_write(ingot_file* file, const void* data, size_t size);
INGOT_API ingot_status* ingot_file_finish(ingot_file* file); /* once, after the last write */
INGOT_API void ingot_file_free(ingot_file* file);

/* ---- Tensors ---- */
typedef enum ingot_dtype {
  INGOT_BOOL = 1,
  INGOT_U8 = 2,
  INGOT_I8 = 3,
  INGOT_I16 = 4,
  INGOT_I32 = 5,
  INGOT_I64 = 6,
  INGOT_F16 = 7,
  INGOT_BF16 = 8,
  INGOT_F32 = 9,
  INGOT_F64 = 10,
  INGOT_U16 = 11,
  INGOT_U32 = 12,
  INGOT_U64 = 13,
  INGOT_E4M3 = 14,
  INGOT_E5M2 = 15,
  INGOT_I4 = 16,
  INGOT_U4 = 17,
  INGOT_C64 = 18,
  INGOT_C128 = 19
} ingot_dtype;

/* The device of a tensor's memory, with the values of DLPack's DLDeviceType. 0 is the host too, so that
 * zero-filled structs describe host memory. */
typedef enum ingot_device_type {
  INGOT_DEVICE_HOST = 0,
  INGOT_DEVICE_CPU = 1,
  INGOT_DEVICE_CUDA = 2
} ingot_device_type;

/* A borrowed view of memory, with the fields of a DLTensor. It has no struct_size, since arrays of it are
 * passed; it will not grow. Functions read it, and the memory that it points to, during the call only. */
typedef struct ingot_tensor {
  void* data;
  int32_t dtype; /* ingot_dtype */
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides; /* in elements; NULL: dense row-major */
  int32_t device_type;    /* ingot_device_type. Runs accept tensors of the engine's GPU (INGOT-U319); anything
                             else is INGOT-N301 */
  int32_t device_id;      /* index among devices of that type; 0 for the host */
  uint64_t byte_offset;   /* of the first element from `data` */
} ingot_tensor;

#ifdef __cplusplus
}
#endif
#endif /* INGOT_BASE_H */
