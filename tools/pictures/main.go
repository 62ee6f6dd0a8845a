// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"

	"github.com/chromedp/chromedp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "drover-pictures-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	drover := filepath.Join(dir, "bin", "drover")
	if err := execute(exec.CommandContext(ctx, "go", "build", "-o", drover, "./cmd/drover")); err != nil {
		return err
	}
	environ := append(os.Environ(), "XDG_STATE_HOME="+dir, "DROVER_KEEP=")
	demo := exec.CommandContext(ctx, drover, "demo", "--scripted")
	demo.Env = environ
	if err := execute(demo); err != nil {
		return err
	}
	serve := exec.CommandContext(ctx, drover, "serve", "--listen=127.0.0.1:0")
	serve.Env, serve.Stderr = environ, os.Stderr
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	out, err := serve.StdoutPipe()
	if err != nil {
		return err
	}
	if err := serve.Start(); err != nil {
		return err
	}
	defer func() {
		_ = serve.Process.Signal(os.Interrupt) // it may have ended
		_ = serve.Wait()
	}()
	address, err := readAddress(out)
	if err != nil {
		return err
	}
	return take(ctx, dir, address)
}

// execute runs a command, whose output is the error if it fails.
func execute(cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, &out)
	}
	return nil
}

var printed = regexp.MustCompile(`page +(http\S+)\n`)

// readAddress reads the address that drover serve prints.
func readAddress(out io.Reader) (string, error) {
	var text []byte
	for part := make([]byte, 4096); ; {
		n, err := out.Read(part)
		text = append(text, part[:n]...)
		if found := printed.FindSubmatch(text); found != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }() // until the server ends
			return string(found[1]), nil
		}
		if err != nil {
			return "", fmt.Errorf("drover serve has printed no address: %w", err)
		}
	}
}

// A picture is what is seen after some steps, each an expression in the page that has to become true.
type picture struct {
	name   string
	width  int64
	height int64
	steps  []string
}

var pictures = []picture{
	{"page-runs", 1280, 420, []string{"location.pathname === '/' || (location.href = '/')", "document.querySelector('tr[data-id]')"}},
	{"page-run", 1280, 900, []string{
		"document.querySelector('.row') || document.querySelector('tr[data-id] a').click()", "document.querySelectorAll('.row').length > 6",
		"[...document.querySelectorAll('.row.is-denied')].some((r) => r.matches('.selected')) || document.querySelector('.row.is-denied').click()",
	}},
	{"page-run-narrow", 400, 860, []string{"[...document.querySelectorAll('[role=tab]')].some((t) => t.textContent === 'Timeline' && t.ariaSelected === 'true') || document.querySelector('#tab-Timeline').click()"}},
}

func take(ctx context.Context, dir, address string) error {
	options := []chromedp.ExecAllocatorOption{
		chromedp.NoInheritEnv, chromedp.Env("PATH="+os.Getenv("PATH"), "HOME="+dir, "TMPDIR="+dir, "LANG=C.UTF-8", "TZ=UTC"),
		chromedp.UserDataDir(filepath.Join(dir, "profile")), chromedp.Flag("force-color-profile", "srgb"),
	}
	for _, flag := range []string{"headless", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses its sandbox to root
	}
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	defer stop()
	ctx, done := chromedp.NewContext(ctx)
	defer done()
	if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
		return err
	}
	for _, p := range pictures {
		for _, scheme := range []string{"light", "dark"} {
			if err := p.take(ctx, scheme); err != nil {
				return fmt.Errorf("%s, %s: %w", p.name, scheme, err)
			}
		}
	}
	return nil
}

func (p picture) take(ctx context.Context, scheme string) error {
	err := chromedp.Do(ctx, chromedp.EmulateViewport(p.width, p.height), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		return t.Call(ctx, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	}))
	for _, step := range p.steps {
		if err == nil {
			err = await(ctx, step)
		}
	}
	if err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond) // what follows from the last step is painted
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	path := filepath.Join("docs", p.name+"-"+scheme+".png")
	fmt.Println(path)
	return os.WriteFile(path, png, 0o644) //nolint:gosec // a file of the repository
}

func await(ctx context.Context, step string) error {
	for range 100 {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("(() => { try { return Boolean("+step+"); } catch { return false; } })()"))
		if is {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("not within 10 s: %s", step)
}
