// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

// exifOrientation reads the orientation, 1 to 8, from EXIF data: a TIFF
// structure whose first directory has tag 274 (Exif 2.32, 4.6.4). Some writers
// of PNG and WebP leave the name before it that JPEG needs. 0 when it does not
// say, or the data ends before it does.
func exifOrientation(b []byte) int {
	if hasPrefix(b, "Exif\x00") && len(b) > 6 {
		b = b[6:]
	}
	if !isTIFF(b) {
		return 0
	}
	dir, state := openTIFF(b)
	if state != tiffOpen {
		return 0
	}
	for dir.next() {
		if dir.tag == tagOrientation {
			return orientation(dir.number())
		}
	}
	return 0
}

// orientation is the value of tag 274 if it is one of the eight.
func orientation(value int64) int {
	if value < 1 || value > 8 {
		return 0
	}
	return int(value)
}
