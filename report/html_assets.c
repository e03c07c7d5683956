/* The style sheet and the script of the page: page.css and page.js, embedded by tools/embed. */
#include "report/html_internal.h"

#include "page_assets.inc"
