package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
	"moorage/secrets"
)

func initSecrets(_ context.Context, c cli.Config, env cli.Environment) error {
	id, err := secrets.Init(c.SecretsKey)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: it keeps the keys that it has, and moorage secrets draw adds one", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "made %s with the key %s; without this file no secret opens, so keep a copy apart from "+
		"the backups\n", c.SecretsKey, id)
	return nil
}

func drawSecretsKey(_ context.Context, c cli.Config, env cli.Environment) error {
	now, before, err := secrets.Rotate(c.SecretsKey)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "added the key %s to %s, which seals from now on; the key %s stays\n",
		now, c.SecretsKey, before)
	return nil
}

func rotationBody(c cli.Config) (any, error) { return client.SecretsRotation{KeepKey: c.KeepKey}, nil }

func printRotation(out io.Writer, _ cli.Config, rotated client.SecretsRotated) error {
	fmt.Fprintf(out, "sealed %s with the key %s\n", moorage.Counted(rotated.Sealed, "secret"), rotated.Key)
	if rotated.Before != "" {
		fmt.Fprintf(out, "the key %s stays for backups from before\n", rotated.Before)
	}
	return nil
}
