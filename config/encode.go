package config

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/BurntSushi/toml"
)

// Encode writes the configuration as TOML, every key included and
// with its version. Load reads it back to the same Config.
func (c Config) Encode() ([]byte, error) {
	c.own()
	var b bytes.Buffer
	b.WriteString("# Resolved configuration: defaults, file and overrides. Every key is explained in docs/config.md.\n")
	fmt.Fprintf(&b, "version = %d\n\n", Version)
	// Nil and empty lists mean the same; the encoder would leave out the nil ones.
	for _, f := range c.leaves() {
		if f.value.Kind() == reflect.Slice && f.value.IsNil() {
			f.value.Set(reflect.MakeSlice(f.value.Type(), 0, 0))
		}
	}
	enc := toml.NewEncoder(&b)
	enc.Indent = ""
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("config: encode: %w", err)
	}
	if err := c.encodeAdded(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
