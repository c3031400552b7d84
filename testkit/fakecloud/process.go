package fakecloud

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Process is a running server. It is safe for concurrent use.
type Process struct {
	// URL is the server's address, without a slash at the end.
	URL string

	// alive is the pipe that keeps the server running. If it is closed, even by the garbage
	// collector, the server ends.
	alive io.Closer
}

// StartProcess runs a script in the folder scripts, such as s3server.py, and returns when its
// server answers. The server ends with this process, even after a panic or a signal: the script
// ends when its pipe is closed, and the system closes the pipe when this process ends. So tests
// that share a server need not stop it.
func StartProcess(script string) (*Process, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	command := exec.CommandContext(context.Background(), "python3", filepath.Join(root, "scripts", script))
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", script, err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start %s: %w: %s", script, errors.Join(err, command.Wait()),
			strings.TrimSpace(stderr.String()))
	}
	return &Process{URL: strings.TrimSpace(line), alive: stdin}, nil
}

// repository returns the folder with go.mod above the working folder.
func repository() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("there is no go.mod above the working folder")
		}
		folder = parent
	}
}
