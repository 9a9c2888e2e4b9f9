// Package turbojpeg decodes JPEG files by libjpeg-turbo's TurboJPEG interface (turbojpeg.h), found at
// run time, without cgo. The library is tested before it is used, after dynlib.ProbeInChild in a child
// process. Pixels are those of Pillow, which stands on libjpeg-turbo too: its accurate inverse DCT and
// interpolated colour.
package turbojpeg
