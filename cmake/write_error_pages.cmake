# SPDX-License-Identifier: Apache-2.0
# INPUT: Markdown with a heading `## CODE` for each page. OUTPUT: C++ initializers {"CODE", "page"}.
file(READ ${INPUT} text)
string(REGEX REPLACE "[\n]+## (INGOT-[A-Z][0-9]+)[\n]+" ")page\"},\n{\"\\1\", R\"page(" text "${text}")
string(REGEX REPLACE "[\n]+$" "" text "${text}")
file(WRITE ${OUTPUT} "{\"\", R\"page(${text})page\"},\n")
