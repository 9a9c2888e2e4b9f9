module example.org/encode

go 1.26.0

require github.com/geoalign/geoalign v0.0.0

replace github.com/geoalign/geoalign => ../..
