/* The files beside the pictures that CNTK reads. */
#ifndef PRONY_DATASETS_PNG_MAP_H
#define PRONY_DATASETS_PNG_MAP_H

#define PNG_MAP_FILE "map.txt"
#define PNG_MEAN_FILE "mean.xml"

#endif
