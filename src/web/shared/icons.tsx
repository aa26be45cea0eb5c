// Every drawing of ours, hand-made on a 16 px grid.
import type { ComponentChildren } from "preact";
import type { Shape, StatusView } from "./status.ts";

const Svg = (props: { children: ComponentChildren; class?: string | undefined }) => (
  <svg
    class={props.class ?? "icon"}
    viewBox="0 0 16 16"
    fill="none"
    stroke="currentColor"
    stroke-width="1.8"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    {props.children}
  </svg>
);

const shapes: Record<Shape, ComponentChildren> = {
  ring: <circle cx="8" cy="8" r="5.6" stroke-dasharray="2.2 3" />,
  play: <path d="M4.5 2.8v10.4L13 8z" fill="currentColor" />,
  diamond: <path d="M8 1.6 14.4 8 8 14.4 1.6 8z" fill="currentColor" />,
  half: (
    <>
      <circle cx="8" cy="8" r="5.8" />
      <path d="M8 2.2a5.8 5.8 0 0 0 0 11.6z" fill="currentColor" stroke="none" />
    </>
  ),
  pause: <path d="M5.2 3v10M10.8 3v10" stroke-width="2.6" />,
  check: <path d="m2.6 8.6 3.6 3.6 7.2-8" stroke-width="2.2" />,
  cross: <path d="m3.4 3.4 9.2 9.2m0-9.2-9.2 9.2" stroke-width="2.2" />,
  square: <rect x="3" y="3" width="10" height="10" rx="1.5" fill="currentColor" stroke="none" />,
  dashed: <rect x="3" y="3" width="10" height="10" rx="1.5" stroke-dasharray="2.2 2.4" />,
};

export const ShapeIcon = (props: { shape: Shape }) => (
  <Svg class={props.shape === "play" ? "icon breathing" : "icon"}>{shapes[props.shape]}</Svg>
);

/** A state as shape and word in its tone. */
export const StateMark = (props: { view: StatusView }) => (
  <span class={`state tone-${props.view.tone}`}>
    <ShapeIcon shape={props.view.shape} />
    {props.view.word}
  </span>
);

export const CloseIcon = () => (
  <Svg>
    <path d="m3.5 3.5 9 9m0-9-9 9" />
  </Svg>
);

export const SendIcon = () => (
  <Svg>
    <path d="M8 13.2V3M3.6 7.2 8 2.8l4.4 4.4" stroke-width="2" />
  </Svg>
);

export const DownIcon = () => (
  <Svg>
    <path d="M8 3v9.6M3.8 8.6 8 12.8l4.2-4.2" />
  </Svg>
);

export const ChevronIcon = (props: { open: boolean }) => (
  <Svg>
    <path d={props.open ? "m3.5 10 4.5-4.5 4.5 4.5" : "m3.5 6 4.5 4.5L12.5 6"} />
  </Svg>
);

/** Our mark: a track that branches. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.4" stroke-linecap="round" aria-hidden="true">
    <path d="M4 18h16M6 18c5 0 5-11 12-11" />
    <circle cx="19.4" cy="6.6" r="1.6" fill="currentColor" stroke="none" />
  </svg>
);
