// The declarations of playwright-core use these names of the DOM library, which programs for Node do without.
declare type Node = object;
declare type HTMLElement = object;
declare type SVGElement = object;
declare type HTMLElementTagNameMap = Record<string, object>;
