export function treePage(main) { main.textContent = "tree"; }
