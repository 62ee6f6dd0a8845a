// SPDX-License-Identifier: Apache-2.0

package claudecell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
)

const (
	// maxAWSFile and maxAWSFiles bound what is copied of a folder that is not ours.
	maxAWSFile  = 1 << 20
	maxAWSFiles = 256
)

// copyAWS gives a CLI without isolation the AWS files of the host, if Bedrock was found there: it works as the
// host's own would, and so do the tools that it runs. With isolation the gateway alone has them.
func copyAWS(in isolation.Inside) (notes []string, err error) {
	if in.Level != isolation.LevelHost || in.Isolation.Upstream != nil || in.Upstream.Wire() != gateway.WireBedrock {
		return nil, nil
	}
	folder, err := awsFolder(in.Isolation)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) && in.Isolation.AWSConfigPath == "" {
		return nil, nil // what pays comes from variables or from the machine
	}
	return []string{"the AWS files of the host are copied into the home, for tools to use"}, copyAWSFiles(in.Home, folder)
}

// copyAWSFiles copies the files in which AWS keeps profiles, keys and logins into the home: config,
// credentials and sso/cache/*.json, nothing else. Only a run without isolation needs that; a cell gets no
// credential. A link that leads out of the folder is refused.
func copyAWSFiles(home *isolation.Home, folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return &isolation.AuthError{
			Reason: fmt.Sprintf("the AWS files %s cannot be opened", folder),
			Fixes:  []string{"set Isolation.AWSConfigPath to the folder that holds config and credentials", "or set ANTHROPIC_API_KEY and unset CLAUDE_CODE_USE_BEDROCK"},
		}
	}
	defer func() { _ = root.Close() }()
	names, err := awsFiles(root)
	if err != nil {
		return advice.Wrap(fmt.Errorf("claudecell: the AWS files %s: %w", folder, err),
			"make them readable to this user, or name their folder in Isolation.AWSConfigPath")
	}
	for _, name := range names {
		if err := copyAWSFile(root, name, filepath.Join(home.Path(), ".aws", filepath.FromSlash(name))); err != nil {
			return advice.Wrap(fmt.Errorf("claudecell: copying %s of the AWS files %s: %w", name, folder, err),
				"set Isolation.AWSConfigPath to a folder with the files themselves")
		}
	}
	return nil
}

func awsFiles(root *os.Root) ([]string, error) {
	names := []string{"config", "credentials"}
	entries, err := fs.ReadDir(root.FS(), "sso/cache")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		if path.Ext(entry.Name()) == ".json" && !entry.IsDir() {
			names = append(names, "sso/cache/"+entry.Name())
		}
	}
	if len(names) > maxAWSFiles {
		return nil, fmt.Errorf("there are more than %d files", maxAWSFiles)
	}
	return names, nil
}

// copyAWSFile copies a file that may be missing.
func copyAWSFile(root *os.Root, name, to string) error {
	info, err := root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxAWSFile {
		return fmt.Errorf("not a regular file of at most %d bytes", maxAWSFile)
	}
	from, err := root.Open(name)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(from, maxAWSFile))
	if err := errors.Join(err, from.Close()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}

// checkAWSConfigPath refuses an AWSConfigPath that is not a readable folder. AWS would go on and report missing credentials.
func checkAWSConfigPath(i *isolation.Isolation) error {
	if i.AWSConfigPath == "" {
		return nil
	}
	if _, err := os.ReadDir(i.AWSConfigPath); err != nil {
		return &isolation.AuthError{
			Reason: fmt.Sprintf("Isolation.AWSConfigPath %s cannot be read: %v", i.AWSConfigPath, err),
			Fixes:  []string{"set Isolation.AWSConfigPath to the folder that holds config and credentials"},
		}
	}
	return nil
}

// awsFolder is where the AWS files of a run are: AWSConfigPath, or .aws in the home of the host's user.
func awsFolder(i *isolation.Isolation) (string, error) {
	if i.AWSConfigPath != "" {
		return i.AWSConfigPath, nil
	}
	home, err := i.Host.HomeDir()
	if err != nil {
		return "", &isolation.AuthError{Reason: "the home of the host's user is not known, and the AWS files with it", Fixes: []string{"set Isolation.AWSConfigPath"}}
	}
	return filepath.Join(home, ".aws"), nil
}
