/* Looks and behaviour of the page: page.css and page.js, as tools/embed puts them here. */
#include "report/html_internal.h"

#include "page_assets.inc"
