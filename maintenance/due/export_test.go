package due

import "context"

// Round calls RunOnce. It returns the Stats from the end of the round, while the planner still
// holds its shards.
func (p *Planner) Round(ctx context.Context) (found PlannerStats, err error) {
	for _, s := range p.shards {
		if err := p.round(ctx, s); err != nil {
			return found, err
		}
	}
	return p.Stats(), nil
}
