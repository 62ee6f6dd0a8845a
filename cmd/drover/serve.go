// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/leftover"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/server"
)

const serveHelp = `Serve has one HTTP API for the runs of this user, and a page that uses it: runs are listed, watched, answered, stopped, continued
and started there. See docs/server.md.

AGENT is an agent file, or a folder of them: those can be started. Without one, a run may have any prompt, which --prompts allows
beside agents. The flags of drover run bound what a started run may do, and a request can only narrow that. Runs that were
started elsewhere appear too, and can be answered and stopped.

It listens on loopback alone, unless --listen names another address: then --tls-cert and --tls-key are needed, and with
--tls-client-ca each client needs a certificate too. The address that
is printed has a token, and is for you; programs find it in the file that is printed. --viewer prints an address that can only
read.

A started run ends with this server. If the server is killed, so are its runs: the next server shows them as lost, with all that
they had recorded, and continues them. Ctrl-C stops the server and its runs in good order. Runs of other programs go on.

With --queue a start beyond -n waits instead of being refused. The queue is in the folder that the flag names, which one server at a
time has. Starts that wait or run when the server ends, in whatever way, are continued by the next one. See docs/fleet.md.`

// serveOptions are the flags and arguments of drover serve.
type serveOptions struct {
	run     runOptions
	words   []string // the flags of drover run, as they were given
	agents  []string
	folders pathList
	prompts bool
	most    int
	listen  string
	cert    string
	key     string
	ca      string
	hosts   pathList
	viewer  bool
	hooks   noticeFlags
	queue   string // the folder of the queue; empty means none
}

// notServed are flags of drover run that mean nothing for a server, or that each request has.
var notServed = []string{"file", "arg", "allow-root", "agent", "schema", "continue", "resume", "json", "quiet", "diff", "no-keep", "record", "replay", "watch", "served"}

func newServeCommand() *cobra.Command { return new(serveOptions).command() }

func (o *serveOptions) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [flags] [AGENT...]",
		Short: "Serve the API and the page of runs",
		Long:  serveHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.agents = args
			o.words = serveWords(cmd)
			return o.serve(cmd.Context(), streams{in: cmd.InOrStdin(), out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()})
		},
		DisableFlagsInUseLine: true,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.listen, "listen", "127.0.0.1:7070", "the address; another than loopback needs TLS")
	f.IntVarP(&o.most, "runs", "n", 2, "how many runs may be under way at a time that were started here")
	f.Var(textFlag{&o.queue, "folder"}, "queue", "keep starts in this folder until they can run: one beyond -n waits, and those that wait or run survive the server")
	f.Var(&o.folders, "folder", "a folder in which runs may be started (default: the current one); repeatable")
	f.BoolVar(&o.prompts, "prompts", false, "allow any prompt, beside the agents")
	f.BoolVar(&o.viewer, "viewer", false, "print an address for viewers too, who can only read")
	f.Var(textFlag{&o.cert, "file"}, "tls-cert", "the certificate of the server")
	f.Var(textFlag{&o.key, "file"}, "tls-key", "its key")
	f.Var(textFlag{&o.ca, "file"}, "tls-client-ca", "let only clients connect that have a certificate of this CA; programs then need no token")
	f.Var(&o.hosts, "host", "a name by which the server is reached, beside localhost and addresses; repeatable")
	o.hooks.addFlags(f)
	o.addRunFlags(f)
	return cmd
}

// addRunFlags declares the flags of drover run that bound each run.
func (o *serveOptions) addRunFlags(f *pflag.FlagSet) {
	own := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.run.addFlags(own)
	own.VisitAll(func(flag *pflag.Flag) {
		if !isNotServed(flag.Name) {
			f.AddFlag(flag)
		}
	})
}

func isNotServed(name string) bool {
	for _, other := range notServed {
		if name == other {
			return true
		}
	}
	return false
}

// serveWords are the flags of drover run among those that were given, as words of a command line.
func serveWords(cmd *cobra.Command) (words []string) {
	known := newRunCommand().Flags()
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if known.Lookup(flag.Name) == nil || isNotServed(flag.Name) {
			return
		}
		words = append(words, flagWords(flag)...)
	})
	return words
}

// flagWords are a flag and its values as words of a command line.
func flagWords(flag *pflag.Flag) (words []string) {
	if many, ok := flag.Value.(interface{ values() []string }); ok {
		for _, value := range many.values() {
			words = append(words, "--"+flag.Name+"="+value)
		}
		return words
	}
	return []string{"--" + flag.Name + "=" + flag.Value.String()}
}

func (l *pathList) values() []string { return *l }

// checkListen refuses an address that others can reach, without TLS.
func (o *serveOptions) checkListen() error {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return advice.Wrap(usageError("--listen: %w", err), "write an address and a port, such as 127.0.0.1:7070")
	}
	addr, err := netip.ParseAddr(host)
	loopback := err == nil && addr.IsLoopback() || host == "localhost"
	switch {
	case (o.cert == "") != (o.key == ""):
		return advice.Wrap(usageError("--tls-cert and --tls-key belong together"), "give both")
	case o.ca != "" && o.cert == "":
		return advice.Wrap(usageError("--tls-client-ca is for a server with TLS"), "add --tls-cert and --tls-key")
	case !loopback && o.cert == "":
		return advice.Wrap(usageError("--listen %s can be reached from other machines, and there is no certificate", o.listen),
			"add --tls-cert and --tls-key, or listen on 127.0.0.1")
	case o.most < 1:
		return advice.Wrap(usageError("--runs: %d is below one", o.most), "say how many runs may be under way at a time")
	}
	return nil
}

func (o *serveOptions) serve(ctx context.Context, s streams) (err error) {
	if err := errors.Join(o.checkListen(), o.hooks.check()); err != nil {
		return err
	}
	if err := o.run.check(); err != nil {
		return err
	}
	store, err := openRuns("")
	if err != nil {
		return err
	}
	starter, err := newStarter(o)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(s.errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var starts server.Starter = starter
	end := starter.close
	if o.queue != "" {
		q, err := openQueue(ctx, starter, log, s.errs)
		if err != nil {
			return err
		}
		starts, end = q, q.close
	}
	defer func() { err = errors.Join(err, end()) }()
	config, err := o.tlsConfig()
	if err != nil {
		return err
	}
	notices := o.hooks.start(ctx, log)
	defer notices.close()
	api, err := server.New(ctx, server.Options{
		Store: store, Starter: starts, Hosts: o.hosts, TLS: config, Version: builtVersion(), Logger: log, Notify: notices.send,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Close()) }()
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return advice.Wrap(fmt.Errorf("the server cannot listen: %w", err), "choose another address with --listen")
	}
	base := "http://" + l.Addr().String()
	if config != nil {
		base = "https://" + l.Addr().String()
	}
	file, err := writeTokens(api, base)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer func() { err = errors.Join(err, os.Remove(file)) }()
	fmt.Fprintf(s.out, "page      %s\n", api.Address(base, ""))
	if o.viewer {
		fmt.Fprintf(s.out, "viewers   %s/#t=%s\n", base, api.ViewerToken())
	}
	fmt.Fprintf(s.out, "API       %s/v1/ with the token in %s\n", base, file)
	err = api.Serve(ctx, l)
	if _, stopped := errors.AsType[stopSignal](context.Cause(ctx)); stopped && err == nil {
		return nil
	}
	return err
}

// tlsConfig has the certificates of the flags. It is nil without them.
func (o *serveOptions) tlsConfig() (*tls.Config, error) {
	if o.cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, advice.Wrap(usageError("--tls-cert, --tls-key: %w", err), "give the files of a certificate and of its key, as PEM")
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if o.ca == "" {
		return config, nil
	}
	text, err := os.ReadFile(o.ca)
	if config.ClientCAs = x509.NewCertPool(); err == nil && !config.ClientCAs.AppendCertsFromPEM(text) {
		err = fmt.Errorf("%s has no certificate", o.ca)
	}
	if err != nil {
		return nil, advice.Wrap(usageError("--tls-client-ca: %w", err), "give the file of the CA's certificate, as PEM")
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	return config, nil
}

// writeTokens writes the addresses and tokens of the server for programs, to a file that only their user can read.
func writeTokens(api *server.Server, base string) (string, error) {
	state, err := leftover.StateFolder()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(state, "serve")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	text, err := plainjson.Marshal(map[string]any{"url": base, "token": api.Token(), "viewerToken": api.ViewerToken(), "pid": os.Getpid()})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprintf("%d.json", os.Getpid()))
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("the file with the token: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	return path, errors.Join(err, f.Close())
}
