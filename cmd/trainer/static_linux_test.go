package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestStaticImports: the static build has nothing that loads libraries.
func TestStaticImports(t *testing.T) {
	cmd := exec.Command("go", "list", "-tags", "static", "-deps", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	list, err := cmd.Output()
	if err != nil {
		t.Skipf("go list does not work here: %v", err)
	}
	if !strings.Contains(string(list), "internal/kernel/gemm\n") || strings.Contains(string(list), "purego") || strings.Contains(string(list), "runtime/cgo") {
		t.Errorf("the static build imports\n%s", list)
	}
}

// TestStaticBuild: the program that make static makes asks for no interpreter and no library,
// and trains in a root that holds nothing else.
func TestStaticBuild(t *testing.T) {
	const program = "../../bin/trainer-static"
	f, err := elf.Open(program)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("no " + program + ": make static makes it")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s has a part %v", program, p.Type)
		}
	}
	if libraries, err := f.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("%s needs %v", program, libraries)
	}

	root := t.TempDir()
	for from, to := range map[string]string{program: "trainer", tiny: "tiny.toml"} {
		b := check.Get(os.ReadFile(from))(t)
		check.OK(t, os.WriteFile(filepath.Join(root, to), b, 0o755))
	}
	inside := func(args ...string) (string, error) {
		cmd := exec.Command("/trainer", args...)
		cmd.Dir, cmd.Env = "/", []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
		}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return out.String(), err
	}
	if _, err := inside("--version"); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		t.Skipf("no other root here: %v", err)
	}
	for _, x := range []struct {
		args []string
		want string
		fail bool
	}{
		{args: []string{"--version"}, want: "trainer "},
		{args: []string{"train", "--config", "tiny.toml", "--max-steps", "2", "--out", "run"}, want: "run folder: run"},
		{args: []string{"doctor"}, want: "build      static"},
		{args: []string{"doctor", "--backend", "onednn"}, want: "compute.backend: is no longer a backend", fail: true},
	} {
		out, err := inside(x.args...)
		if (err != nil) != x.fail || !strings.Contains(out, x.want) {
			t.Errorf("%q: %v\n%s", x.args, err, out)
		}
	}
}
