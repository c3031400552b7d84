package main

import (
	"context"
	"errors"
	"fmt"

	"moorage"
	"moorage/catalog"
	"moorage/internal/cli"
	"moorage/secrets"
)

func initSecrets(_ context.Context, c cli.Config, env cli.Environment) error {
	id, err := secrets.Init(c.SecretsKey)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "made %s with the key %s; without this file no secret opens, so keep a copy apart from "+
		"the backups\n", c.SecretsKey, id)
	return nil
}

func rotateSecrets(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withStopped(ctx, c, env, func(node *node) error {
		now, before, err := secrets.Rotate(c.SecretsKey)
		if err != nil {
			return err
		}
		fmt.Fprintf(env.Stdout, "added the key %s to %s\n", now, c.SecretsKey)
		keys, ok := node.storages.sealer.(*secrets.Keyring)
		if !ok {
			return errors.New("the keys were not read")
		}
		if err := keys.Reload(); err != nil {
			return err
		}
		rewrapped, err := catalog.SealingOf(node.catalog).Rewrap(ctx, moorage.System(whoOpened))
		if err != nil {
			return err
		}
		fmt.Fprintf(env.Stdout, "sealed %s with it; the key %s stays for backups from before\n",
			counted(rewrapped, "secret"), before)
		return nil
	})
}
