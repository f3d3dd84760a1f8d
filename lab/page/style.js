// The translator's look, in the page's own colours.

const STYLE = `
.tr { color: var(--pst-color-text-base, #1c2126); container-type: inline-size; font-size: 1rem; }
.tr :is(ul, ol) { list-style: none; margin: 0; padding: 0; }
.tr p { margin: 0; }
.tr .tr-title { font-size: 1rem; font-weight: 600; margin-bottom: 0.4rem; }
.tr-part + .tr-part { margin-top: 1.3rem; padding-top: 1.1rem; border-top: 1px solid var(--pst-color-border, #c9ccd3); }
.tr-row { display: flex; flex-wrap: wrap; gap: 0.5rem 1.1rem; align-items: center; }
.tr-control { display: inline-flex; align-items: center; gap: 0.45rem; min-height: 32px; max-width: 100%; }
.tr :is(button, select, input[type="text"]) { font: inherit; color: inherit; min-height: 32px; padding: 0.15rem 0.7rem; border: 1px solid var(--pst-color-border, #c9ccd3); border-radius: 6px; background: var(--pst-color-background, Canvas); max-width: 100%; }
.tr :is(button, select) { cursor: pointer; }
.tr :is(button, select, input, summary, .tr-scroll):focus-visible { outline: 3px solid var(--pst-color-primary, #3a4fa3); outline-offset: 2px; }
.tr button[aria-disabled="true"] { opacity: 0.45; cursor: default; }
.tr input[type="checkbox"] { width: 18px; height: 18px; margin: 0; accent-color: var(--pst-color-primary, #3a4fa3); }
.tr input[type="range"] { min-height: 24px; accent-color: var(--pst-color-primary, #3a4fa3); }
.tr .tr-form { display: flex; flex-wrap: wrap; gap: 0.5rem; }
.tr .tr-form .tr-control { flex: 1 1 14rem; }
.tr .tr-form input { flex: 1; min-width: 0; min-height: 38px; }
.tr .tr-form .tr-main { background: var(--pst-color-primary, #3a4fa3); border-color: transparent; color: var(--pst-color-background, #fff); font-weight: 600; padding-inline: 1.1rem; }
.tr-tries { display: flex; flex-wrap: wrap; gap: 0.35rem; margin-top: 0.5rem; }
.tr .tr-tries button { border-color: transparent; background: var(--pst-color-surface, #f5f6fa); font-size: 0.85rem; min-height: 28px; padding: 0.1rem 0.6rem; text-align: left; }
.tr-said { display: flex; flex-wrap: wrap; gap: 0.15rem; margin: 1.1rem 0 0.7rem; min-height: 3.6rem; align-items: flex-start; }
.tr .tr-said button { display: flex; flex-direction: column; align-items: center; border-color: transparent; background: none; padding: 0.15rem 0.45rem 0.3rem; position: relative; }
.tr-said .tr-word { font-family: var(--course-serif, Georgia, serif); font-size: 1.5rem; line-height: 1.3; }
.tr .tr-said button::after { content: ""; position: absolute; left: 0.45rem; bottom: 0; height: 3px; border-radius: 2px; width: calc((100% - 0.9rem) * var(--share)); background: var(--pst-color-primary, #3a4fa3); }
.tr .tr-said button[aria-pressed="true"] { background: var(--pst-color-primary-bg, #e8ebf8); }
.tr .tr-said .tr-changed .tr-word { color: var(--course-trap, #a8440f); text-decoration: underline wavy 1px; text-underline-offset: 0.2em; }
.tr-share { font-size: 0.78rem; font-variant-numeric: tabular-nums; color: var(--pst-color-text-muted, #5b636c); }
.tr-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.tr .tr-line { margin-top: 0.7rem; min-height: 1.5em; }
.tr-part .tr .tr-line { margin-top: 0.7rem; }
.tr-looks { display: grid; gap: 1.2rem 1.6rem; margin-top: 0.9rem; }
.tr-picture { min-width: 0; overflow-x: auto; }
.tr-head { font-size: 0.8rem; color: var(--pst-color-text-muted, #5b636c); }
.tr-arcs { display: grid; grid-template-columns: minmax(6.5rem, 9rem) minmax(3rem, 1fr) minmax(5.5rem, 8.5rem); max-width: 34rem; }
.tr-arcs > .tr-head:first-child { text-align: right; padding-right: 0.6rem; }
.tr-arcs > .tr-head { padding: 0 0.6rem 0.2rem; }
.tr-arcs li { height: 30px; display: flex; align-items: center; white-space: nowrap; }
.tr .tr-keys li { justify-content: flex-end; gap: 0.5rem; padding-right: 0.6rem; border-radius: 4px; background: linear-gradient(to left, color-mix(in srgb, var(--pst-color-primary, #3a4fa3) calc(var(--share) * 30%), transparent), transparent); }
.tr-arcs svg { width: 100%; display: block; overflow: visible; }
.tr-arc { fill: none; stroke: var(--pst-color-primary, #3a4fa3); vector-effect: non-scaling-stroke; stroke-linecap: round; }
.tr .tr-queries button { border-color: transparent; background: none; min-height: 28px; padding: 0 0.6rem; width: 100%; text-align: left; }
.tr .tr-queries button[aria-pressed="true"] { background: var(--pst-color-primary-bg, #e8ebf8); font-weight: 600; }
.tr-map { width: 100%; height: auto; display: block; }
.tr-map text { font-size: 13px; fill: currentColor; }
.tr-map .tr-strong { font-weight: 700; }
.tr-cell { fill: var(--pst-color-primary, #3a4fa3); }
.tr-paper { fill: var(--pst-color-surface, #f5f6fa); }
.tr-frame { fill: none; stroke: currentColor; stroke-width: 1.5; }
.tr-layer { display: flex; gap: 0.35rem; align-items: center; margin-top: 0.35rem; }
.tr-layer > span { font-size: 0.8rem; color: var(--pst-color-text-muted, #5b636c); width: 3.4rem; flex: none; }
.tr .tr-layer button { flex: 1 1 3rem; max-width: 4.6rem; min-width: 0; padding: 4px 4px 0; font-size: 0.72rem; line-height: 1.3; }
.tr-layer svg { display: block; width: 100%; height: 3.4rem; }
.tr .tr-layer button[aria-pressed="true"] { border-color: var(--pst-color-primary, #3a4fa3); box-shadow: 0 0 0 1px var(--pst-color-primary, #3a4fa3); }
.tr .tr-layer .tr-isOff { opacity: 0.35; text-decoration: line-through; }
.tr-bars li { display: grid; grid-template-columns: 5.5rem 1fr 3rem; gap: 0.6rem; align-items: center; min-height: 26px; }
.tr-bars li .tr-word { text-align: right; }
.tr-bar { height: 10px; border-radius: 5px; background: linear-gradient(var(--pst-color-primary, #3a4fa3) 0 0) no-repeat left / calc(100% * var(--share)) 100%, var(--pst-color-surface, #f5f6fa); }
.tr-bars .tr-taken .tr-word { font-weight: 600; }
.tr-list { max-width: 30rem; margin-top: 0.2rem; }
.tr-stamps + .tr-head { margin-top: 1.2rem; }
.tr-scroll { overflow-x: auto; }
.tr-scroll svg { display: block; max-width: none; }
.tr-node text { font-size: 14px; fill: currentColor; }
.tr-node .tr-small { font-size: 10px; fill: var(--pst-color-text-muted, #5b636c); }
.tr-node.tr-dropped { opacity: 0.5; }
.tr-node.tr-dropped text:first-child { text-decoration: line-through; }
.tr-node.tr-best text:first-child { font-weight: 700; fill: var(--pst-color-primary, #3a4fa3); }
.tr-edge { fill: none; stroke: var(--pst-color-text-muted, #5b636c); stroke-width: 1; opacity: 0.5; }
.tr-edge.tr-dropped { opacity: 0.22; }
.tr-edge.tr-best { stroke: var(--pst-color-primary, #3a4fa3); stroke-width: 2.5; opacity: 1; }
.tr .tr-finished { margin-top: 0.5rem; }
.tr .tr-finished li:first-child .tr-word { font-weight: 600; color: var(--pst-color-primary, #3a4fa3); }
.tr .tr-finished li { font-variant-numeric: tabular-nums; }
.tr details { margin-top: 1.1rem; font-size: 0.9rem; color: var(--pst-color-text-muted, #5b636c); }
.tr details p { margin-top: 0.4rem; }
.tr-minus { fill: var(--course-trap, #a8440f); }
.tr-strip { display: block; width: 100%; height: 22px; background: var(--pst-color-surface, #f5f6fa); border-radius: 2px; }
.tr-drawn { margin-top: 0.9rem; min-width: 0; }
.tr-tokens { display: flex; flex-wrap: wrap; gap: 0.3rem; margin: 0.6rem 0; }
.tr .tr-tokens button { font-family: var(--course-serif, Georgia, serif); font-size: 1.1rem; padding: 0.05rem 0.55rem; }
.tr .tr-tokens button[aria-pressed="true"] { background: var(--pst-color-primary-bg, #e8ebf8); border-color: var(--pst-color-primary, #3a4fa3); font-weight: 600; }
.tr-rows li { display: grid; grid-template-columns: 6.5rem 3rem minmax(0, 1fr) 3rem; gap: 0.5rem; align-items: center; min-height: 32px; }
.tr-rows .tr-taken { padding-bottom: 0.4rem; margin-bottom: 0.4rem; border-bottom: 1px solid var(--pst-color-border, #c9ccd3); font-weight: 600; }
.tr .tr-rows .tr-word { padding: 0 0.6rem; }
.tr .tr-rows button { border-color: transparent; background: none; text-align: left; min-height: 28px; padding: 0 0.6rem; color: var(--pst-color-primary, #3a4fa3); }
.tr-rows li > .tr-share:last-child { text-align: right; }
.tr-orders { display: grid; grid-template-columns: auto 1fr 1fr; gap: 0.7rem 1.2rem; align-items: baseline; }
.tr-orders span { font-family: var(--course-serif, Georgia, serif); font-size: 1.15rem; line-height: 1.3; }
.tr-orders .tr-head { font: inherit; font-size: 0.85rem; }
.tr-orders .tr-given { color: var(--pst-color-text-muted, #5b636c); }
.tr-orders .tr-with { color: var(--pst-color-primary, #3a4fa3); font-weight: 600; }
.tr-orders .tr-without { color: var(--course-trap, #a8440f); font-weight: 600; }
.tr-way li { display: grid; grid-template-columns: 8.2rem minmax(0, 1fr) 4.6rem; gap: 0.6rem; align-items: center; }
.tr-way li.tr-out { border-bottom: 1px solid var(--pst-color-border, #c9ccd3); padding-bottom: 0.3rem; margin-bottom: 0.3rem; }
.tr-way .tr-word { font-size: 0.9rem; text-align: right; }
.tr-bristles { display: block; width: 100%; height: 54px; overflow: visible; }
.tr-bristles path { fill: none; stroke: var(--pst-color-primary, #3a4fa3); stroke-width: 0.7; }
.tr-bristles.tr-made path { stroke: var(--course-trap, #a8440f); }
.tr-bristles.tr-sum path { stroke: var(--pst-color-text-muted, #5b636c); }
.tr-bristles .tr-zero, .tr-bristles.tr-made .tr-zero { stroke: var(--pst-color-border, #c9ccd3); stroke-width: 0.02; }
.tr-from-padding { stroke: var(--course-trap, #a8440f); }
.tr-residual { stroke: var(--pst-color-text-muted, #5b636c); stroke-width: 1.5; stroke-dasharray: 5 4; vector-effect: non-scaling-stroke; }
.tr-levels { margin-top: 0.9rem !important; max-width: 34rem; }
.tr-levels li { display: grid; grid-template-columns: 6.5rem minmax(0, 1fr); gap: 0.6rem; align-items: center; margin-top: 3px; }
.tr-levels .tr-share { text-align: right; }
.tr-sides { display: grid; gap: 1.2rem 2rem; grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); }
.tr .tr-beginning { font-family: var(--course-serif, Georgia, serif); font-size: 1.25rem; line-height: 1.35; margin: 0.2rem 0 0.6rem; }
.tr-beginning mark { padding: 0 0.2rem; border-radius: 4px; color: inherit; background: var(--pst-color-primary-bg, #e8ebf8); }
.tr-beginning .tr-bad { background: none; color: var(--course-trap, #a8440f); text-decoration: underline wavy 1px; text-underline-offset: 0.2em; }
.tr-sides .tr-bad .tr-bar { background: linear-gradient(var(--course-trap, #a8440f) 0 0) no-repeat left / calc(100% * var(--share)) 100%, var(--pst-color-surface, #f5f6fa); }
.tr .tr-form + .tr-head { margin-top: 0.7rem; }
.tr-form + .tr-row { margin-top: 0.5rem; }
.tr-rest { color: var(--pst-color-text-muted, #5b636c); }
@container (max-width: 26rem) {
  .tr-orders { grid-template-columns: 1fr 1fr; gap: 0.4rem 0.8rem; }
  .tr-orders .tr-head { grid-column: 1 / -1; margin-top: 0.5rem; }
  .tr-orders > span:first-child { display: none; }
  .tr-rows li { grid-template-columns: 6rem minmax(0, 1fr) 2.4rem; }
  .tr-rows li > .tr-share:nth-child(2) { display: none; }
  .tr-way li { grid-template-columns: 5.2rem minmax(0, 1fr) 3.9rem; gap: 0.4rem; }
}
@container (min-width: 37rem) {
  .tr-looks { grid-template-columns: minmax(0, 1.5fr) minmax(14.5rem, 1fr); }
}
`;
