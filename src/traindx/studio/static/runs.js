export function runList() {}
export function runPage() {}
export function comparePage() {}
