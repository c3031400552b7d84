package due

import "context"

// Round is RunOnce; it returns what the Stats are at its end, while the shards are held.
func (p *Planner) Round(ctx context.Context) (found PlannerStats, err error) {
	for _, s := range p.shards {
		if err := p.round(ctx, s); err != nil {
			return found, err
		}
	}
	return p.Stats(), nil
}
