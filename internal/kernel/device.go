package kernel

// Device computes beside the threads of an engine, such as a GPU. What it can do package exec knows.
type Device interface {
	Name() string
	// Describe says what the device is.
	Describe() string
	Close() error
}

// SetDevice gives the engine a device that graphs compiled with the engine run on. Close closes it.
func (e *Engine) SetDevice(d Device) { e.device = d }

// Device returns the device, nil without one.
func (e *Engine) Device() Device { return e.device }
